// What moves after a retention. A planner is a pure function (layout, settings, forecast) -> MigrationPlan with the state
// before and after, simulated. planners.def lists them; what each moves stands at the top of its file.
#pragma once

#include "knob.h"
#include "page/cost.h"
#include "page/page.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace ot {

enum class Planner : uint8_t {
#define PLANNER(value, Enumerator, name, placement, sentence, knobs) Enumerator = value,
#include "page/planners.def"
};

struct PlannerSettings {
    Planner planner = Planner::Auto;

#define KNOB(type, name, value, least, metavar, sentence) type name = value;
#define PLANNER(value, Enumerator, name, placement, sentence, knobs) knobs
#include "page/planners.def"
};

// What is expected until the next retention, for planners that weigh costs.
struct Forecast {
    CostModel cost;
    uint32_t arriving = 0;      // tokens that fit before it
    Work work;                  // what they are
    std::vector<bool> shifted;  // one a cell: its keys are rewritten by the position shift in any case
};

struct MigrationPlan {
    Planner planner = Planner::Native;  // who made it (never Auto)
    bool accepted = false;
    const char * reason = "";           // a static text: why not, or what it wins
    std::vector<Move> moves;            // all sources distinct, all destinations distinct; empty unless accepted
    LayoutStats before, after;          // after == before unless accepted
};

#define PLANNER(value, Enumerator, name, placement, sentence, knobs) \
    MigrationPlan plan_##name(const Layout & layout, const PlannerSettings & settings = {}, const Forecast & forecast = {});
#include "page/planners.def"

// Dispatches to the planner of `settings`.
MigrationPlan plan_migration(const Layout & layout, const PlannerSettings & settings, const Forecast & forecast);

// Where new tokens go under a planner; under auto, once it has made a plan, as that plan's maker wants.
Placement placement_for(Planner planner);
Placement placement_after(Planner planner, const MigrationPlan & plan);

// A line of planners.def.
struct PlannerEntry {
    Planner planner;
    const char * name;  // with underscores
    Placement placement;
    MigrationPlan (*plan)(const Layout & layout, const PlannerSettings & settings, const Forecast & forecast);
};

const std::vector<PlannerEntry> & planners();

// Sets the knob of that name.
KnobFit set_knob(PlannerSettings & settings, std::string_view name, double value);

}  // namespace ot
