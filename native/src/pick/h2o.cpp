// H2O (heavy-hitter oracle): half of the budget for the newest tokens, half for those among the older that have received
// most attention. One set of tokens for all layers and heads, whose attention is added up. The newest token always stays.
#include "pick/plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ot {

namespace {

// Scores of the tokens behind the system unit, oldest first; 0 where none was counted.
std::vector<double> evictable_scores(const Ledger & ledger) {
    std::vector<double> scores;
    scores.reserve(evictable_tokens(ledger));
    for (uint32_t i = evictable_begin(ledger); i < ledger.units().size(); ++i) {
        const Unit & unit = ledger.units()[i];
        scores.insert(scores.end(), unit.scores.begin(), unit.scores.end());
        if (unit.scores.empty()) scores.insert(scores.end(), unit.cells.size(), 0.0);
    }
    return scores;
}

// Which of the first `older` tokens have the `n` largest scores; of equals the newer.
std::vector<bool> heaviest(const std::vector<double> & scores, uint32_t older, uint32_t n) {
    std::vector<uint32_t> order(older);
    std::iota(order.begin(), order.end(), 0u);
    std::nth_element(order.begin(), order.begin() + n, order.end(), [&](uint32_t a, uint32_t b) {
        return scores[a] != scores[b] ? scores[a] > scores[b] : a > b;
    });
    std::vector<bool> heavy(older, false);
    for (uint32_t i = 0; i < n; ++i) heavy[order[i]] = true;
    return heavy;
}

}  // namespace

RetentionPlan plan_h2o(const Ledger & ledger, const PickSettings & settings) {
    const uint32_t evictable = evictable_tokens(ledger);
    if (evictable == 0 || ledger.tokens() <= settings.low_watermark) return finish_plan(ledger, {});
    const uint32_t system = ledger.tokens() - evictable;
    const uint32_t budget = std::max(settings.low_watermark, system + 1) - system;
    const uint32_t recent = (budget + 1) / 2;
    std::vector<bool> keep = heaviest(evictable_scores(ledger), evictable - recent, budget - recent);
    keep.resize(evictable, true);
    return keep_tokens(ledger, keep);
}

}  // namespace ot
