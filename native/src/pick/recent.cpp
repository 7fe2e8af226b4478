// The newest media units and nothing older, as SimpleStream (arXiv 2604.02317) keeps the newest four frames: a plain rule
// that is hard to beat in questions about now, and knows nothing of before. Conversation stays as long as the unit that it
// follows. Between two retentions the history grows to the high watermark as under any policy.
#include "pick/plan.h"

#include <utility>

namespace ot {

RetentionPlan plan_recent(const Ledger & ledger, const PickSettings & settings) {
    const std::vector<Unit> & units = ledger.units();
    const uint32_t first = evictable_begin(ledger), end = evictable_end(ledger);
    // The first unit that stays: that of the newest media units that is the oldest. Without as many, all stay but what
    // the low watermark drops.
    uint32_t begin = first, seen = 0;
    for (uint32_t i = static_cast<uint32_t>(units.size()); i-- > first && seen < settings.newest_units;) {
        if (units[i].kind != UnitKind::Media || units[i].cells.empty()) continue;
        ++seen;
        begin = i;
    }
    if (seen < settings.newest_units) begin = first;
    std::vector<UnitCut> cuts;
    uint32_t left = ledger.tokens();
    for (uint32_t i = first; i < end; ++i) {
        const uint32_t tokens = units[i].tokens();
        if (i >= begin && left <= settings.low_watermark) break;
        if (tokens == 0) continue;
        cuts.push_back({i, {}});
        left -= tokens;
    }
    return finish_plan(ledger, std::move(cuts));
}

}  // namespace ot
