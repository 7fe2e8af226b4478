// Ordered suffix: the shortest suffix whose packing makes the attended span shorter. Section 6.2.
#include "page/page.h"
#include "page/plan.h"

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

MigrationPlan plan_ordered_suffix(const Layout & layout, uint32_t min_pages) {
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

    // The end that packing from k leaves grows with k, so the first hit from the back is the largest k. It starts behind
    // a hole (else k + 1 would leave the same end), so every cell of the suffix moves.
    const uint64_t wanted = uint64_t{min_pages} * geometry.page_size;
    for (size_t k = used.size(); k-- > movable;) {
        const Cell begin = k == 0 ? 0 : used[k - 1] + 1;
        const uint32_t end = begin + static_cast<uint32_t>(used.size() - k);
        if (page_span(end, geometry) + wanted > before.page_span) continue;
        if (physical_span(end, layout.size(), geometry) >= before.physical_span) continue;
        std::vector<Move> moves = pack_behind(begin, used, k);
        const LayoutStats after = moved(layout, moves).stats();
        return accept(Planner::OrderedSuffix, "shorter span", std::move(moves), before, after);
    }
    return refuse(Planner::OrderedSuffix, "no suffix shortens the span enough", before);
}

}  // namespace ot
