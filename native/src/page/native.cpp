// Native: nothing moves, and new tokens lie where llama.cpp's own slot search puts them.
#include "page/plan.h"

namespace ot {

MigrationPlan plan_native(const Layout & layout, const PlannerSettings &, const Forecast &) {
    return refuse(Planner::Native, "native never moves", layout.stats());
}

}  // namespace ot
