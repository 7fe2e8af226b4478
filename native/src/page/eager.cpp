// Eager compaction: everything packed to a contiguous prefix. The oracle of the paper's figure 15.
#include "page/plan.h"

#include <utility>

namespace ot {

MigrationPlan plan_eager(const Layout & layout, const PlannerSettings &, const Forecast &) {
    const LayoutStats before = layout.stats();
    std::vector<Move> moves;
    Cell dst = 0;
    for (Cell src = 0; src < layout.size(); ++src) {
        if (layout.at(src) == CellClass::Free) continue;
        if (src != dst) moves.push_back({src, dst});
        dst += 1;
    }
    if (moves.empty()) return refuse(Planner::Eager, "already packed", before);
    const LayoutStats after = moved(layout, moves).stats();
    return accept(Planner::Eager, "closes all holes", std::move(moves), before, after);
}

}  // namespace ot
