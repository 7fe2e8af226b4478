// Hole filling: the shortest span that packing can reach, for the fewest moves. Not of the paper.
//
// What lies behind the end of the shortest span has to move, nothing else does: the order of cells means nothing to
// attention. Eager and ordered-suffix keep the order and so move everything behind the first hole.
#include "page/plan.h"

#include <algorithm>
#include <utility>

namespace ot {

MigrationPlan plan_hole_filling(const Layout & layout, const PlannerSettings &, const Forecast &) {
    const LayoutStats before = layout.stats();
    const Cell last = layout.end();
    uint32_t end = layout.used();  // of the shortest span: must-keep cells stay in it
    for (Cell cell = last; cell-- > end;) {
        if (layout.at(cell) == CellClass::Must) end = cell + 1;
    }
    end = page_span(end, layout.geometry());
    if (end >= before.page_span) return refuse(Planner::HoleFilling, "the span can't get shorter", before);

    std::vector<Move> moves;
    Cell hole = 0;
    for (Cell src = end; src < last; ++src) {
        if (layout.at(src) == CellClass::Free) continue;
        while (layout.at(hole) != CellClass::Free) ++hole;
        moves.push_back({src, hole++});
    }
    const LayoutStats after = moved(layout, moves).stats();
    return accept(Planner::HoleFilling, "shortest span", std::move(moves), before, after);
}

}  // namespace ot
