#include "ledger/ledger.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ot {

namespace {

bool is_raster(const Span & span, bool mrope) { return mrope && span.width != 0; }

Position span_extent(const Span & span, bool mrope) {
    return static_cast<Position>(is_raster(span, mrope) ? extent(span.width, span.first, span.length) : span.length);
}

// Hands out bases along the history. Pieces of one image share a base under M-RoPE; all else follows what is before it.
struct Cursor {
    Position next = 0;   // the first free position
    Position image = 0;  // base of the span placed last

    Position place(const Span & span, bool mrope) {
        if (!(span.continues && is_raster(span, mrope))) image = next;
        next = std::max(next, image + span_extent(span, mrope));
        return image;
    }
};

// What is left of `span` when only its tokens [begin, end) are.
Span piece_of(const Span & span, uint32_t begin, uint32_t end, bool mrope) {
    Span piece = span;
    piece.length = end - begin;
    piece.first += begin;
    if (!is_raster(span, mrope)) piece.base += static_cast<Position>(begin);
    return piece;
}

// Leaves the `keep` ranges of `unit`, appends the cells of all others to `freed`.
void shorten(Unit & unit, const std::vector<KeepRange> & keep, bool mrope, std::vector<Cell> & freed) {
    std::vector<Span> spans;
    std::vector<Cell> cells;
    std::vector<double> scores;
    auto range = keep.begin();
    auto cell = unit.cells.cbegin();
    bool has_earlier_piece = false;
    for (uint32_t i = 0; i < unit.spans.size(); ++i) {
        const Span & span = unit.spans[i];
        if (!span.continues) has_earlier_piece = false;
        uint32_t done = 0;
        for (; range != keep.end() && range->span == i; ++range) {
            if (range->begin == range->end) continue;
            freed.insert(freed.end(), cell + done, cell + range->begin);
            cells.insert(cells.end(), cell + range->begin, cell + range->end);
            if (!unit.scores.empty()) {
                const auto score = unit.scores.cbegin() + (cell - unit.cells.cbegin());
                scores.insert(scores.end(), score + range->begin, score + range->end);
            }
            if (done != 0 && range->begin == done) {
                spans.back().length += range->end - range->begin;
            } else {
                spans.push_back(piece_of(span, range->begin, range->end, mrope));
                spans.back().continues = has_earlier_piece;
            }
            has_earlier_piece = true;
            done = range->end;
        }
        freed.insert(freed.end(), cell + done, cell + span.length);
        cell += span.length;
    }
    unit.partial = unit.partial || cells.size() < unit.cells.size();
    unit.spans = std::move(spans);
    unit.cells = std::move(cells);
    unit.scores = std::move(scores);
}

}  // namespace

bool is_image(Role role) { return role == Role::ImageSource || role == Role::ImageSlice; }

uint32_t extent(uint32_t width, uint32_t first, uint32_t length) {
    if (width == 0 || length == 0) return length;
    const uint32_t last = first + length - 1;
    const uint32_t row = last / width;
    // A run that leaves its first row has filled that row to the end.
    const uint32_t column = first / width == row ? last % width : width - 1;
    return 1 + std::max(row, column);
}

TokenPosition token_position(const Span & span, uint32_t offset, bool mrope) {
    if (!is_raster(span, mrope)) {
        const Position p = span.base + static_cast<Position>(offset);
        return {p, p, p};
    }
    const uint32_t index = span.first + offset;
    return {span.base, span.base + static_cast<Position>(index / span.width),
            span.base + static_cast<Position>(index % span.width)};
}

std::vector<TokenPosition> token_positions(const std::vector<Span> & spans, bool mrope) {
    std::vector<TokenPosition> positions;
    for (const Span & span : spans) {
        for (uint32_t i = 0; i < span.length; ++i) positions.push_back(token_position(span, i, mrope));
    }
    return positions;
}

Ledger::Ledger(bool mrope, std::vector<Unit> units, uint64_t next_id, Position next_position)
    : mrope_(mrope), units_(std::move(units)), next_id_(next_id), next_position_(next_position) {
    for (const Unit & unit : units_) tokens_ += unit.tokens();
}

Position Ledger::lay_out(std::vector<Span> & spans) const {
    Cursor cursor{next_position_, next_position_};
    for (Span & span : spans) span.base = cursor.place(span, mrope_);
    return cursor.next;
}

uint64_t Ledger::append(UnitKind kind, std::vector<Span> spans, std::vector<Cell> cells, double start_s, double end_s) {
    for (const Span & span : spans) next_position_ = std::max(next_position_, span.base + span_extent(span, mrope_));
    tokens_ += static_cast<uint32_t>(cells.size());
    Unit unit;
    unit.id = next_id_++;
    unit.kind = kind;
    unit.start_s = start_s;
    unit.end_s = end_s;
    unit.spans = std::move(spans);
    unit.cells = std::move(cells);
    units_.push_back(std::move(unit));
    return units_.back().id;
}

void Ledger::extend_last(Cell cell) {
    Unit & unit = units_.back();
    Span & span = unit.spans.back();
    if (span.base + static_cast<Position>(span.length) != next_position_) {
        // The history's tail was cut with positions left sparse: the gap can't lie inside a span.
        const Role role = span.role;
        add_span(role, {cell});
        unit.spans.back().continues = true;
        return;
    }
    span.length += 1;
    unit.cells.push_back(cell);
    if (!unit.scores.empty()) unit.scores.push_back(0);
    tokens_ += 1;
    next_position_ += 1;
}

void Ledger::add_span(Role role, std::vector<Cell> cells) {
    Span span;
    span.role = role;
    span.length = static_cast<uint32_t>(cells.size());
    span.base = next_position_;
    Unit & unit = units_.back();
    unit.spans.push_back(span);
    unit.cells.insert(unit.cells.end(), cells.begin(), cells.end());
    if (!unit.scores.empty()) unit.scores.resize(unit.cells.size(), 0);
    tokens_ += span.length;
    next_position_ += static_cast<Position>(span.length);
}

CutResult Ledger::cut(const std::vector<UnitCut> & cuts, bool compact) {
    CutResult result;
    for (const UnitCut & c : cuts) shorten(units_[c.unit], c.keep, mrope_, result.freed);
    tokens_ -= static_cast<uint32_t>(result.freed.size());
    std::sort(result.freed.begin(), result.freed.end());
    units_.erase(std::remove_if(units_.begin(), units_.end(), [](const Unit & unit) { return unit.cells.empty(); }),
                 units_.end());
    if (compact) result.shifts = close_gaps();
    return result;
}

std::vector<Shift> Ledger::close_gaps() {
    std::vector<Shift> shifts;
    Cursor cursor;
    for (Unit & unit : units_) {
        size_t start = 0;
        for (Span & span : unit.spans) {
            const Position base = cursor.place(span, mrope_);
            const Position delta = base - span.base;
            if (delta != 0) {
                for (uint32_t i = 0; i < span.length; ++i) shifts.push_back({unit.cells[start + i], delta});
                span.base = base;
                span.rotations += 1;
            }
            start += span.length;
        }
    }
    next_position_ = cursor.next;
    return shifts;
}

void Ledger::move_cells(const std::vector<Cell> & from, const std::vector<Cell> & to) {
    if (from.empty()) return;
    std::vector<Cell> target(size_t{*std::max_element(from.begin(), from.end())} + 1, kNoCell);
    for (size_t i = 0; i < from.size(); ++i) target[from[i]] = to[i];
    for (Unit & unit : units_) {
        for (Cell & cell : unit.cells) {
            if (cell < target.size() && target[cell] != kNoCell) cell = target[cell];
        }
    }
}

void Ledger::attend(const std::vector<double> & by_cell) {
    for (Unit & unit : units_) {
        unit.scores.resize(unit.cells.size(), 0);
        for (size_t i = 0; i < unit.cells.size(); ++i) {
            if (unit.cells[i] < by_cell.size()) unit.scores[i] += by_cell[unit.cells[i]];
        }
    }
}

// Units before the recalled ones.
static size_t recalled_begin(const std::vector<Unit> & units) { return !units.empty() && units[0].kind == UnitKind::System ? 1 : 0; }

std::vector<Shift> Ledger::insert_recalled(std::vector<Unit> units) {
    const size_t at = recalled_begin(units_);
    Cursor cursor;
    if (at == 1) {
        // What lies behind the system unit's last span, wherever that lies.
        for (const Span & span : units_[0].spans) cursor.next = std::max(cursor.next, span.base + span_extent(span, mrope_));
    }
    const Position begin = cursor.next;
    for (Unit & unit : units) {
        unit.recalled = true;
        tokens_ += unit.tokens();
        for (Span & span : unit.spans) span.base = cursor.place(span, mrope_);
    }
    const Position added = cursor.next - begin;
    std::vector<Shift> shifts;
    for (size_t i = at; i < units_.size(); ++i) {
        for (const Cell cell : units_[i].cells) shifts.push_back({cell, added});
        for (Span & span : units_[i].spans) {
            span.base += added;
            span.rotations += 1;
        }
    }
    next_position_ += added;
    units_.insert(units_.begin() + static_cast<std::ptrdiff_t>(at), std::make_move_iterator(units.begin()), std::make_move_iterator(units.end()));
    return shifts;
}

CutResult Ledger::remove_recalled() {
    CutResult result;
    const size_t at = recalled_begin(units_);
    size_t end = at;
    Position first = 0, next = 0;
    for (; end < units_.size() && units_[end].recalled; ++end) {
        const Unit & unit = units_[end];
        if (end == at) first = unit.spans.front().base;
        for (const Span & span : unit.spans) next = std::max(next, span.base + span_extent(span, mrope_));
        result.freed.insert(result.freed.end(), unit.cells.begin(), unit.cells.end());
    }
    if (end == at) return result;
    std::sort(result.freed.begin(), result.freed.end());
    tokens_ -= static_cast<uint32_t>(result.freed.size());
    const Position added = next - first;
    units_.erase(units_.begin() + static_cast<std::ptrdiff_t>(at), units_.begin() + static_cast<std::ptrdiff_t>(end));
    for (size_t i = at; i < units_.size(); ++i) {
        for (const Cell cell : units_[i].cells) result.shifts.push_back({cell, -added});
        for (Span & span : units_[i].spans) {
            span.base -= added;
            span.rotations = span.rotations > 0 ? span.rotations - 1 : 1;  // undone, or the first of what came since
        }
    }
    next_position_ -= added;
    return result;
}

uint32_t Ledger::recalled_tokens() const {
    uint32_t tokens = 0;
    for (size_t i = recalled_begin(units_); i < units_.size() && units_[i].recalled; ++i) tokens += units_[i].tokens();
    return tokens;
}

uint32_t Ledger::max_rotations() const {
    uint32_t most = 0;
    for (const Unit & unit : units_) {
        for (const Span & span : unit.spans) most = std::max(most, span.rotations);
    }
    return most;
}

}  // namespace ot
