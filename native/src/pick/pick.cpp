#include "pick/pick.h"

#include "pick/plan.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace ot {

namespace {

constexpr bool nothing = false;
constexpr bool attention = true;

const PolicyEntry & entry_of(Policy policy) {
    return *std::find_if(policies().begin(), policies().end(), [&](const PolicyEntry & entry) { return entry.policy == policy; });
}

RetentionPlan plan_by_rule(const Ledger & ledger, const PickSettings & settings) {
    std::vector<bool> keep = settings.rule(ledger, settings);
    if (keep.size() != ledger.tokens()) throw PolicyError{"the policy answers for another number of tokens than there are"};
    const auto system = static_cast<std::ptrdiff_t>(ledger.tokens() - evictable_tokens(ledger));
    const auto behind = keep.begin() + system;
    if (std::find(keep.begin(), behind, false) != behind) throw PolicyError{"the policy deletes of the system unit, which has to stay"};
    if (!keep.empty() && !keep.back()) throw PolicyError{"the policy deletes the newest token, which has to stay"};
    return keep_tokens(ledger, {behind, keep.end()});
}

}  // namespace

const std::vector<PolicyEntry> & policies() {
    static const std::vector<PolicyEntry> entries{
#define POLICY(value, Enumerator, name, reads, sentence, knobs) {Policy::Enumerator, #name, reads, plan_##name},
#include "pick/policies.def"
    };
    return entries;
}

RetentionPlan plan_retention(const Ledger & ledger, const PickSettings & settings) {
    if (ledger.tokens() <= settings.high_watermark) return finish_plan(ledger, {});
    return settings.rule ? plan_by_rule(ledger, settings) : entry_of(settings.policy).plan(ledger, settings);
}

bool reads_attention(const PickSettings & settings) {
    return settings.rule ? settings.rule_reads_attention : entry_of(settings.policy).reads_attention;
}

bool deletes(const PickSettings & settings) { return settings.rule || settings.policy != Policy::Full; }

KnobFit set_knob(PickSettings & settings, std::string_view name, double value) {
#define KNOB(type, knob, initial, least, metavar, sentence) \
    if (name == #knob) return set_knob(settings.knob, value, least);
#define POLICY(number, Enumerator, policy, reads, sentence, knobs) knobs
#include "pick/policies.def"
    return KnobFit::Unknown;
}

uint32_t evictable_begin(const Ledger & ledger) {
    return !ledger.units().empty() && ledger.units()[0].kind == UnitKind::System ? 1 : 0;
}

uint32_t evictable_end(const Ledger & ledger) {
    const std::vector<Unit> & units = ledger.units();
    const uint32_t begin = evictable_begin(ledger);
    auto newest = static_cast<uint32_t>(units.size());
    while (newest > begin && units[newest - 1].cells.empty()) --newest;
    return newest > begin ? newest - 1 : begin;
}

uint32_t evictable_tokens(const Ledger & ledger) {
    return ledger.tokens() - (evictable_begin(ledger) == 1 ? ledger.units()[0].tokens() : 0);
}

RetentionPlan finish_plan(const Ledger & ledger, std::vector<UnitCut> cuts) {
    RetentionPlan plan;
    plan.triggered = !cuts.empty();
    plan.before_tokens = ledger.tokens();
    auto cut = cuts.begin();
    for (uint32_t i = 0; i < ledger.units().size(); ++i) {
        const Unit & unit = ledger.units()[i];
        uint32_t left = unit.tokens();
        if (cut != cuts.end() && cut->unit == i) {
            left = 0;
            for (const KeepRange & range : cut->keep) left += range.end - range.begin;
            ++cut;
        }
        plan.after_tokens += left;
        if (left == 0 && plan.triggered) {
            plan.dropped_units += 1;  // an empty unit too: the cut forgets it
        } else if (unit.partial || left < unit.tokens()) {
            plan.partial_units += 1;
        } else {
            plan.full_units += 1;
        }
    }
    plan.cuts = std::move(cuts);
    return plan;
}

RetentionPlan delete_range(const Ledger & ledger, uint32_t begin, uint32_t end) {
    std::vector<UnitCut> cuts;
    uint32_t unit_start = 0;
    for (uint32_t i = evictable_begin(ledger); i < ledger.units().size() && unit_start < end; ++i) {
        const Unit & unit = ledger.units()[i];
        const uint32_t unit_end = unit_start + unit.tokens();
        if (std::max(begin, unit_start) < std::min(end, unit_end)) {
            UnitCut cut;
            cut.unit = i;
            uint32_t start = unit_start;
            for (uint32_t s = 0; s < unit.spans.size(); ++s) {
                // The hole in this span, in its own tokens.
                const uint32_t length = unit.spans[s].length;
                const uint32_t from = std::min(std::max(begin, start) - start, length);
                const uint32_t to = std::min(std::max(end, start) - start, length);
                if (from == to) {
                    cut.keep.push_back({s, 0, length});
                } else {
                    if (from > 0) cut.keep.push_back({s, 0, from});
                    if (to < length) cut.keep.push_back({s, to, length});
                }
                start += length;
            }
            cuts.push_back(std::move(cut));
        }
        unit_start = unit_end;
    }
    return finish_plan(ledger, std::move(cuts));
}

RetentionPlan keep_tokens(const Ledger & ledger, const std::vector<bool> & keep) {
    std::vector<UnitCut> cuts;
    size_t token = 0;
    for (uint32_t i = evictable_begin(ledger); i < ledger.units().size(); ++i) {
        const Unit & unit = ledger.units()[i];
        UnitCut cut;
        cut.unit = i;
        uint32_t kept = 0;
        for (uint32_t s = 0; s < unit.spans.size(); ++s) {
            for (uint32_t t = 0; t < unit.spans[s].length; ++t) {
                if (!keep[token++]) continue;
                kept += 1;
                const bool follows = !cut.keep.empty() && cut.keep.back().span == s && cut.keep.back().end == t;
                if (follows) {
                    cut.keep.back().end += 1;
                } else {
                    cut.keep.push_back({s, t, t + 1});
                }
            }
        }
        if (kept < unit.tokens()) cuts.push_back(std::move(cut));
    }
    return finish_plan(ledger, std::move(cuts));
}

}  // namespace ot
