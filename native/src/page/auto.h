// The planner that weighs the others. Pure like them.
#pragma once

#include "page/cost.h"
#include "page/page.h"

#include <cstdint>
#include <vector>

namespace ot {

// What auto knows of the time until the next retention.
struct Outlook {
    uint32_t arriving = 0;      // tokens that fit before it
    Work work;                  // what they are
    std::vector<bool> shifted;  // one a cell: its keys are rewritten by the position shift in any case
};

// The cheapest of native, class-packing, hole-filling and ordered-suffix; `planner` of the plan says which. Eager is weighed
// where must-keep cells far behind keep the others from the shortest span.
MigrationPlan plan_auto(const Layout & layout, uint32_t min_pages, const CostModel & cost, const Outlook & outlook);

}  // namespace ot
