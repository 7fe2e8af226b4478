// Which placement goes with which planner, and the planner that moves nothing.
#include "page/page.h"
#include "page/plan.h"

namespace ot {

Placement placement_for(Planner planner) {
    switch (planner) {
        case Planner::Native: return Placement::Native;
        case Planner::ClassPacking: return Placement::Class;
        default: return Placement::Span;  // auto too, until it has picked one
    }
}

MigrationPlan plan_native(const Layout & layout) {
    return refuse(Planner::Native, "native never moves", layout.stats());
}

}  // namespace ot
