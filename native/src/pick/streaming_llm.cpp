// StreamingLLM: the first tokens behind the system unit (sinks) and the most recent ones. The newest token always stays.
#include "pick/plan.h"

#include <algorithm>

namespace ot {

RetentionPlan plan_streaming_llm(const Ledger & ledger, const PickSettings & settings) {
    const uint32_t evictable = evictable_tokens(ledger);
    if (evictable <= settings.sinks || ledger.tokens() <= settings.low_watermark) return finish_plan(ledger, {});
    const uint32_t most = evictable - settings.sinks - 1;
    const uint32_t n = std::min(ledger.tokens() - settings.low_watermark, most);
    return delete_range(ledger, settings.sinks, settings.sinks + n);
}

}  // namespace ot
