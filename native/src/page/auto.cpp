// Auto: the plan with the cheapest predicted total of attention until the next retention and moving.
//
// It weighs native, class-packing, hole-filling and ordered-suffix; eager too where must-keep cells far behind keep the
// others from the shortest span.
#include "page/plan.h"

#include <algorithm>
#include <utility>

namespace ot {

namespace {

// Attention from now until `arriving` more tokens are there: the mean of both ends. Nearly all that happens between is
// that holes fill up, which is linear; so two looks at the layout are enough, however many units arrive.
double attention_until_full(const Layout & layout, Placement placement, const Forecast & forecast) {
    Layout full = layout;
    uint32_t head = 0;
    const uint32_t n = std::min(forecast.arriving, layout.size() - layout.used());
    for (const Cell cell : place(layout, n, placement, head)) full.set(cell, CellClass::Recent);
    return (attention_us(forecast.cost, layout, forecast.work) + attention_us(forecast.cost, full, forecast.work)) / 2;
}

}  // namespace

MigrationPlan plan_auto(const Layout & layout, const PlannerSettings & settings, const Forecast & forecast) {
    // The fewest moves first, as a rule: of equal plans, the first wins.
    std::vector<MigrationPlan> plans;
    plans.push_back(plan_native(layout));
    plans.push_back(plan_class_packing(layout));
    plans.push_back(plan_hole_filling(layout));
    plans.push_back(plan_ordered_suffix(layout, settings));
    if (plans[2].after.page_span > page_span(layout.used(), layout.geometry())) plans.push_back(plan_eager(layout));

    size_t best = 0;
    double least = 0;
    for (size_t i = 0; i < plans.size(); ++i) {
        const MigrationPlan & plan = plans[i];
        if (i > 0 && !plan.accepted) continue;
        const Placement placement = placement_after(Planner::Auto, plan);
        const double total = attention_until_full(moved(layout, plan.moves), placement, forecast) +
                             moving_us(forecast.cost, plan.moves, forecast.shifted);
        if (i > 0 && total >= least) continue;
        best = i;
        least = total;
    }
    if (best == 0) return refuse(Planner::Native, "moving would cost more than it saves", plans[0].before);
    return std::move(plans[best]);
}

}  // namespace ot
