// How a planner closes its plan. For the planners alone.
#pragma once

#include "page/planner.h"

#include <utility>

namespace ot {

inline MigrationPlan refuse(Planner planner, const char * reason, const LayoutStats & before) {
    MigrationPlan plan;
    plan.planner = planner;
    plan.reason = reason;
    plan.before = plan.after = before;
    return plan;
}

inline MigrationPlan accept(Planner planner, const char * reason, std::vector<Move> moves, const LayoutStats & before,
                            const LayoutStats & after) {
    MigrationPlan plan;
    plan.planner = planner;
    plan.accepted = true;
    plan.reason = reason;
    plan.moves = std::move(moves);
    plan.before = before;
    plan.after = after;
    return plan;
}

}  // namespace ot
