// FIFO: drop whole units, oldest first. The newest unit always stays.
#include "pick/plan.h"

#include <utility>

namespace ot {

RetentionPlan plan_fifo(const Ledger & ledger, const PickSettings & settings) {
    const uint32_t end = evictable_end(ledger);
    std::vector<UnitCut> cuts;
    uint32_t left = ledger.tokens();
    for (uint32_t i = evictable_begin(ledger); i < end && left > settings.low_watermark; ++i) {
        const uint32_t tokens = ledger.units()[i].tokens();
        if (tokens == 0) continue;
        cuts.push_back({i, {}});
        left -= tokens;
    }
    return finish_plan(ledger, std::move(cuts));
}

}  // namespace ot
