#include "page/planner.h"

#include "page/plan.h"

#include <algorithm>

namespace ot {
namespace {

const PlannerEntry & entry_of(Planner planner) {
    return *std::find_if(planners().begin(), planners().end(), [&](const PlannerEntry & entry) { return entry.planner == planner; });
}

}  // namespace

const std::vector<PlannerEntry> & planners() {
    static const std::vector<PlannerEntry> entries{
#define PLANNER(value, Enumerator, name, placement, sentence, knobs) {Planner::Enumerator, #name, Placement::placement, plan_##name},
#include "page/planners.def"
    };
    return entries;
}

MigrationPlan plan_migration(const Layout & layout, const PlannerSettings & settings, const Forecast & forecast) {
    return entry_of(settings.planner).plan(layout, settings, forecast);
}

Placement placement_for(Planner planner) { return entry_of(planner).placement; }

Placement placement_after(Planner planner, const MigrationPlan & plan) {
    if (planner != Planner::Auto) return placement_for(planner);
    // Where it moved nothing, tokens fill the holes from below: native's own search is for those who ask for native.
    return plan.planner == Planner::Native ? Placement::Span : placement_for(plan.planner);
}

KnobFit set_knob(PlannerSettings & settings, std::string_view name, double value) {
#define KNOB(type, knob, initial, least, metavar, sentence) \
    if (name == #knob) return set_knob(settings.knob, value, least);
#define PLANNER(number, Enumerator, planner, placement, sentence, knobs) knobs
#include "page/planners.def"
    return KnobFit::Unknown;
}

}  // namespace ot
