// Ordered suffix: the shortest suffix whose packing makes the attended span short enough. Section 6.2.
//
// "Short enough" is within `min_pages` of the shortest span that packing can reach. The paper says what a plan must win at
// least, not what it may leave; the shortest suffix that wins just that leaves more behind round after round (2,380 cells
// on average where 1,712 suffice, in a simulation of 60 units).
#include "page/plan.h"

#include <algorithm>
#include <utility>

namespace ot {

namespace {

// Packs used[k..] from `begin` on.
std::vector<Move> pack_behind(Cell begin, const std::vector<Cell> & used, size_t k) {
    std::vector<Move> moves;
    for (size_t i = k; i < used.size(); ++i) moves.push_back({used[i], begin++});
    return moves;
}

}  // namespace

MigrationPlan plan_ordered_suffix(const Layout & layout, const PlannerSettings & settings, const Forecast &) {
    const uint32_t min_pages = settings.min_pages;
    const Geometry & geometry = layout.geometry();
    const LayoutStats before = layout.stats();
    std::vector<Cell> used;
    used.reserve(layout.used());
    size_t movable = 0;  // index of the first cell behind the last must-keep one
    for (Cell cell = 0; cell < layout.size(); ++cell) {
        if (layout.at(cell) == CellClass::Free) continue;
        used.push_back(cell);
        if (layout.at(cell) == CellClass::Must) movable = used.size();
    }

    // The end that packing from k leaves grows with k: the shortest is that of the first movable cell, and the first hit
    // from the back is the largest k. It starts behind a hole (else k + 1 would leave the same end), so every cell of the
    // suffix moves.
    const auto end_of = [&](size_t k) { return (k == 0 ? 0 : used[k - 1] + 1) + static_cast<uint32_t>(used.size() - k); };
    const uint64_t wanted = uint64_t{min_pages} * geometry.page_size;
    const uint64_t slack = uint64_t{std::max(min_pages, 1u) - 1} * geometry.page_size;
    for (size_t k = used.size(); k-- > movable;) {
        const uint32_t span = page_span(end_of(k), geometry);
        if (span > page_span(end_of(movable), geometry) + slack || span + wanted > before.page_span) continue;
        if (physical_span(end_of(k), layout.size(), geometry) >= before.physical_span) continue;
        std::vector<Move> moves = pack_behind(end_of(k) - static_cast<uint32_t>(used.size() - k), used, k);
        const LayoutStats after = moved(layout, moves).stats();
        return accept(Planner::OrderedSuffix, "shorter span", std::move(moves), before, after);
    }
    return refuse(Planner::OrderedSuffix, "no suffix shortens the span enough", before);
}

}  // namespace ot
