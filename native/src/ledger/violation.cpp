#include "ledger/violation.h"

#include <algorithm>
#include <cmath>

namespace ot {
namespace {

std::string span_violation(const Unit & unit, size_t index, bool mrope, Position & next) {
    const Span & span = unit.spans[index];
    if (span.length == 0 || span.length > kLongestSpan || span.first > kLongestSpan || span.width > kLongestSpan) return "a span's size";
    if (span.width != 0 && !is_image(span.role)) return "a raster that is no image";
    const bool raster = mrope && span.width != 0;
    if (span.continues) {
        if (index == 0) return "a span that continues nothing";
        const Span & before = unit.spans[index - 1];
        if (before.role != span.role || before.width != span.width) return "a span that continues another kind";
        if (raster && (span.base != before.base || span.first < before.first + before.length)) return "the order of an image's pieces";
    }
    if (!(span.continues && raster) && span.base < next) return "the order of positions";
    if (span.base > kMostPositions) return "a position";
    const uint32_t reach = raster ? extent(span.width, span.first, span.length) : span.length;
    next = std::max(next, span.base + static_cast<Position>(reach));
    return "";
}

}  // namespace

std::string violation(const std::vector<Unit> & units, bool mrope, uint64_t next_id, Position next_position, uint32_t n_cells) {
    std::vector<bool> taken(n_cells, false);
    Position next = 0;
    uint64_t least_id = 0;
    bool was_recalled = false;
    for (const Unit & unit : units) {
        const bool is_first = &unit == &units.front() || (&unit == &units.front() + 1 && units.front().kind == UnitKind::System);
        if (unit.recalled && !was_recalled && (!is_first || unit.kind == UnitKind::System)) return "the place of what was recalled";
        if (!unit.recalled && was_recalled) least_id = 0;  // a part of what was recalled may still be there
        was_recalled = unit.recalled;
        if (unit.id < least_id || unit.id >= next_id) return "the order of units";
        least_id = unit.id + 1;
        if (!std::isfinite(unit.start_s) || !std::isfinite(unit.end_s)) return "a time";
        if (unit.spans.empty()) return "a unit without spans";
        uint64_t tokens = 0;
        for (size_t i = 0; i < unit.spans.size(); ++i) {
            if (std::string what = span_violation(unit, i, mrope, next); !what.empty()) return what;
            tokens += unit.spans[i].length;
        }
        if (tokens != unit.cells.size()) return "the number of a unit's tokens";
        if (!unit.scores.empty() && unit.scores.size() != unit.cells.size()) return "the number of a unit's scores";
        for (const double score : unit.scores) {
            if (!std::isfinite(score) || score < 0) return "a score";
        }
        for (const Cell cell : unit.cells) {
            if (cell >= n_cells || taken[cell]) return "a cell";
            taken[cell] = true;
        }
    }
    if (next > next_position || next_position > kMostPositions) return "the next position";
    return "";
}

}  // namespace ot
