#include "recall/choice.h"

#include <algorithm>

namespace ot {
namespace {

// A chooser looks at the best few alone: the others couldn't come back in any case.
constexpr size_t kMostLookedAt = 64;

bool are_neighbours(const Candidate & a, const Candidate & b, double apart_s) { return b.start_s - a.end_s <= apart_s && a.start_s - b.end_s <= apart_s; }

// How much the best stands out of what any unit gets.
float clearness_of(const std::vector<Candidate> & candidates, const std::vector<size_t> & best_first) {
    if (best_first.size() < 2) return 0;
    return candidates[best_first.front()].score / candidates[best_first[best_first.size() / 2]].score;
}

class Taking {
public:
    Taking(const std::vector<Candidate> & candidates, const ChoiceSettings & settings) : candidates_(candidates), settings_(settings), taken_(candidates.size()) {}

    bool take(size_t unit) {
        const Candidate & candidate = candidates_[unit];
        if (taken_[unit] || candidate.tokens == 0 || candidate.tokens > settings_.tokens - tokens_) return false;
        tokens_ += candidate.tokens;
        units_.push_back(unit);
        return taken_[unit] = true;
    }

    // What stands beside it and has a share of its score.
    void take_neighbours(size_t unit) {
        const float least = candidates_[unit].score * settings_.neighbour;
        for (const size_t other : {unit - 1, unit + 1}) {
            if (other >= candidates_.size() || candidates_[other].score < least) continue;
            if (are_neighbours(candidates_[unit], candidates_[other], settings_.moment_s)) take(other);
        }
    }

    bool has(size_t unit) const { return taken_[unit]; }
    const std::vector<size_t> & units() const { return units_; }
    uint32_t tokens() const { return tokens_; }

private:
    const std::vector<Candidate> & candidates_;
    const ChoiceSettings & settings_;
    std::vector<bool> taken_;
    std::vector<size_t> units_;
    uint32_t tokens_ = 0;
};

}  // namespace

Choice choose(const std::vector<Candidate> & candidates, const ChoiceSettings & settings, const std::function<float(size_t, size_t)> & alike) {
    Choice choice;
    std::vector<size_t> order;
    for (size_t i = 0; i < candidates.size(); ++i) {
        if (candidates[i].score > 0) order.push_back(i);
    }
    if (order.empty()) return choice;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return candidates[a].score > candidates[b].score; });
    choice.clearness = clearness_of(candidates, order);
    if (choice.clearness > 0 && choice.clearness < settings.threshold) {
        choice.verdict = Verdict::NotClear;
        return choice;
    }
    const float best = candidates[order.front()].score;
    const auto is_far_behind = [&](size_t unit) { return candidates[unit].score < best * settings.share; };
    order.erase(std::find_if(order.begin(), order.end(), is_far_behind), order.end());
    order.resize(std::min(order.size(), kMostLookedAt));

    // Maximal marginal relevance: each time the one whose score, less what it shares with those taken, is largest.
    std::vector<float> shared(order.size(), 0.0f);
    Taking taking{candidates, settings};
    std::vector<bool> done(order.size(), false);
    for (size_t round = 0; round < order.size(); ++round) {
        size_t next = order.size();
        const auto value = [&](size_t i) { return candidates[order[i]].score - settings.likeness * best * shared[i]; };
        for (size_t i = 0; i < order.size(); ++i) {
            if (!done[i] && (next == order.size() || value(i) > value(next))) next = i;
        }
        done[next] = true;
        if (!taking.has(order[next]) && !taking.take(order[next])) continue;
        taking.take_neighbours(order[next]);
        for (size_t i = 0; i < order.size(); ++i) {
            if (!done[i]) shared[i] = std::max(shared[i], alike(order[next], order[i]));
        }
    }
    choice.units = taking.units();
    choice.tokens = taking.tokens();
    std::sort(choice.units.begin(), choice.units.end());
    choice.verdict = taking.has(order.front()) ? Verdict::Recalled : Verdict::NoRoom;
    if (choice.verdict == Verdict::NoRoom) {
        choice.units.clear();
        choice.tokens = 0;
    }
    return choice;
}

}  // namespace ot
