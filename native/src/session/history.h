// The history without a model: ledger, cells, and what retention and migration would do. Pure, so that the live session,
// simulation and tests run the same plans.
#pragma once

#include "ledger/ledger.h"
#include "page/cost.h"
#include "page/planner.h"
#include "pick/pick.h"
#include "row.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ot {

struct HistorySettings {
    PickSettings pick;
    PlannerSettings page;
    CostModel cost;  // for auto
    Geometry geometry;
    bool compact_positions = true;
    Position position_limit = 0;  // of the model; sparse positions that come near it are closed up once. 0: none
};

// One round of upkeep: what was deleted, what moves, what shifts.
struct Upkeep {
    RetentionPlan retention;
    MigrationPlan migration;
    std::vector<Cell> freed;
    std::vector<Row> rows;  // survivors that change their place or their position
    uint32_t rows_moved = 0;
    uint32_t rows_shifted = 0;
};

// What becomes of a history that is given units back, or loses them again.
struct Recollection {
    std::vector<Cell> cells;      // of the units, in token order; sorted where they are freed
    std::vector<Row> rows;    // what stands behind them, and shifts
};

class History {
public:
    History(bool mrope, uint32_t n_cells, const HistorySettings & settings);

    // A saved one, see history_state.h. Of `placement`, a planner other than auto needs nothing: it has its own.
    History(Ledger ledger, uint32_t n_cells, const HistorySettings & settings, Placement placement, Cell head);

    const Ledger & ledger() const { return ledger_; }
    const Layout & layout() const { return layout_; }
    const HistorySettings & settings() const { return settings_; }
    Placement placement() const { return placement_; }
    Cell head() const { return head_; }
    uint32_t free_cells() const { return layout_.size() - layout_.used(); }

    // Cells for the next n tokens, in token order; empty when there is no room. They are free until append, extend_last
    // or add_span takes them; give_back is for those that nothing took, because decoding failed.
    std::vector<Cell> place(uint32_t n);
    void give_back(const std::vector<Cell> & cells);

    Position lay_out(std::vector<Span> & spans) const { return ledger_.lay_out(spans); }
    uint64_t append(UnitKind kind, std::vector<Span> spans, std::vector<Cell> cells, double start_s, double end_s);
    void extend_last(Cell cell);
    void add_span(Role role, std::vector<Cell> cells);

    // Attention that cells have received, for policies that retain by it.
    void attend(const std::vector<double> & by_cell) { ledger_.attend(by_cell); }

    // Retention down to the low watermark when the history is above min(high watermark, limit), and the migration that
    // follows from it. The history changes at once; the caller executes `freed` and `rows` on the cache.
    Upkeep maintain(uint32_t limit);

    // Puts units back right behind the system unit (Ledger::insert_recalled); they get their cells here. Nothing changes and
    // there are no cells when there is no room. The caller fills the cells and executes `rows`.
    Recollection recall(std::vector<Unit> units);
    // Takes them out again; nothing when there are none. The caller frees the cells and executes `rows`.
    Recollection dismiss();

private:
    bool must_close_gaps() const;
    void occupy(const std::vector<Cell> & cells, CellClass cls);
    void lower_head(Cell freed) { head_ = std::min(head_, freed); }
    MigrationPlan plan_migration(const std::vector<Shift> & shifts) const;

    HistorySettings settings_;
    Ledger ledger_;
    Layout layout_;
    Placement placement_;  // follows the last plan when the planner is auto
    Cell head_ = 0;  // of native placement; no free cell lies below it
};

}  // namespace ot
