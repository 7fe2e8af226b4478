// Full: nothing is deleted.
#include "pick/plan.h"

namespace ot {

RetentionPlan plan_full(const Ledger & ledger, const PickSettings &) { return finish_plan(ledger, {}); }

}  // namespace ot
