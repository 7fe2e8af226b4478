#include "session/history.h"

#include <algorithm>
#include <utility>

namespace ot {
namespace {

// One row a survivor: a shifted one that also moves must not be two.
std::vector<Row> fuse(const std::vector<Shift> & shifts, const std::vector<Move> & moves, uint32_t n_cells) {
    std::vector<Cell> target(n_cells, kNoCell);
    for (const Move & move : moves) target[move.src] = move.dst;
    std::vector<Row> rows;
    rows.reserve(shifts.size() + moves.size());
    for (const Shift & shift : shifts) {
        Cell & dst = target[shift.cell];
        rows.push_back({shift.cell, dst == kNoCell ? shift.cell : dst, shift.delta});
        dst = kNoCell;
    }
    for (const Move & move : moves) {
        if (target[move.src] != kNoCell) rows.push_back({move.src, move.dst, 0});
    }
    return rows;
}

}  // namespace

History::History(bool mrope, uint32_t n_cells, const HistorySettings & settings)
    : settings_(settings), ledger_(mrope), layout_(n_cells, settings.geometry), placement_(placement_for(settings.page.planner)) {}

History::History(Ledger ledger, uint32_t n_cells, const HistorySettings & settings, Placement placement, Cell head)
    : settings_(settings),
      ledger_(std::move(ledger)),
      layout_(classify(ledger_, n_cells, settings.geometry)),
      placement_(settings.page.planner == Planner::Auto ? placement : placement_for(settings.page.planner)),
      head_(head) {}

std::vector<Cell> History::place(uint32_t n) { return ot::place(layout_, n, placement_, head_); }

void History::give_back(const std::vector<Cell> & cells) {
    for (const Cell cell : cells) lower_head(cell);
}

uint64_t History::append(UnitKind kind, std::vector<Span> spans, std::vector<Cell> cells, double start_s, double end_s) {
    occupy(cells, kind == UnitKind::System ? CellClass::Must : CellClass::Recent);
    return ledger_.append(kind, std::move(spans), std::move(cells), start_s, end_s);
}

void History::extend_last(Cell cell) {
    occupy({cell}, ledger_.units().back().partial ? CellClass::Selected : CellClass::Recent);
    ledger_.extend_last(cell);
}

void History::add_span(Role role, std::vector<Cell> cells) {
    occupy(cells, ledger_.units().back().partial ? CellClass::Selected : CellClass::Recent);
    ledger_.add_span(role, std::move(cells));
}

// Until the next round the history grows by less than the cache; half the window is left to models whose window is small.
bool History::must_close_gaps() const {
    const Position limit = settings_.position_limit;
    return limit > 0 && ledger_.next_position() > limit - std::min(static_cast<Position>(layout_.size()), limit / 2);
}

void History::occupy(const std::vector<Cell> & cells, CellClass cls) {
    for (const Cell cell : cells) layout_.set(cell, cls);
}

MigrationPlan History::plan_migration(const std::vector<Shift> & shifts) const {
    Forecast forecast;
    forecast.cost = settings_.cost;
    const uint32_t high = settings_.pick.high_watermark;
    forecast.arriving = high > ledger_.tokens() ? high - ledger_.tokens() : 0;
    forecast.work = expected_work(ledger_, forecast.arriving);
    forecast.shifted.resize(layout_.size());
    for (const Shift & shift : shifts) forecast.shifted[shift.cell] = true;
    return ot::plan_migration(layout_, settings_.page, forecast);
}

Upkeep History::maintain(uint32_t limit) {
    Upkeep upkeep;
    PickSettings pick = settings_.pick;
    if (limit > 0 && limit < pick.high_watermark) {
        pick.high_watermark = limit;
        pick.low_watermark = std::min(pick.low_watermark, limit);
    }
    upkeep.retention = plan_retention(ledger_, pick);
    if (!upkeep.retention.triggered) return upkeep;

    CutResult cut = ledger_.cut(upkeep.retention.cuts, settings_.compact_positions || must_close_gaps());
    upkeep.freed = std::move(cut.freed);
    if (!upkeep.freed.empty()) lower_head(upkeep.freed.front());  // as llama.cpp's own deletion does

    layout_ = classify(ledger_, layout_.size(), settings_.geometry);
    upkeep.migration = plan_migration(cut.shifts);
    placement_ = placement_after(settings_.page.planner, upkeep.migration);
    upkeep.rows = fuse(cut.shifts, upkeep.migration.moves, layout_.size());
    upkeep.rows_moved = static_cast<uint32_t>(upkeep.migration.moves.size());
    upkeep.rows_shifted = static_cast<uint32_t>(cut.shifts.size());
    if (!upkeep.migration.moves.empty()) {
        std::vector<Cell> from, to;
        from.reserve(upkeep.migration.moves.size());
        to.reserve(upkeep.migration.moves.size());
        for (const Move & move : upkeep.migration.moves) {
            from.push_back(move.src);
            to.push_back(move.dst);
        }
        ledger_.move_cells(from, to);
        layout_ = moved(layout_, upkeep.migration.moves);
    }
    return upkeep;
}

}  // namespace ot
