// Token sliding: drop the oldest tokens regardless of borders. The newest token always stays.
#include "pick/plan.h"

#include <algorithm>

namespace ot {

RetentionPlan plan_token(const Ledger & ledger, const PickSettings & settings) {
    const uint32_t evictable = evictable_tokens(ledger);
    if (evictable == 0 || ledger.tokens() <= settings.low_watermark) return finish_plan(ledger, {});
    return delete_range(ledger, 0, std::min(ledger.tokens() - settings.low_watermark, evictable - 1));
}

}  // namespace ot
