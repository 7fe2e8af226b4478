// OmniPick against the four steps written down naively, and its invariants, over many rounds of random histories.
#include "builders.h"
#include "check.h"
#include "pick/pick.h"

#include <numeric>

namespace ot {

namespace {

using Kept = std::vector<std::vector<bool>>;  // for each unit, each token

uint32_t count(const std::vector<bool> & unit) {
    return static_cast<uint32_t>(std::count(unit.begin(), unit.end(), true));
}

uint32_t count(const Kept & kept) {
    return std::accumulate(kept.begin(), kept.end(), 0u, [](uint32_t n, const auto & unit) { return n + count(unit); });
}

bool is_system(const Ledger & ledger, uint32_t u) { return u == 0 && ledger.units()[0].kind == UnitKind::System; }

// Steps 1 to 3 for a window that begins at unit `window`, token by token.
Kept steps_1_to_3(const Ledger & ledger, const PickSettings & settings, uint32_t window) {
    Kept kept;
    uint32_t text = 0;
    for (uint32_t u = 0; u < ledger.units().size(); ++u) {
        kept.emplace_back();
        uint32_t in_span = 0;
        for (const Span & span : ledger.units()[u].spans) {
            if (!span.continues) in_span = 0;
            for (uint32_t i = 0; i < span.length; ++i, ++in_span) {
                bool keep = true;
                if (!is_system(ledger, u) && u < window) {
                    if (span.role == Role::ImageSlice) keep = in_span < settings.image_sinks;
                    if (span.role == Role::Audio) keep = in_span < settings.audio_sinks;
                    if (span.role == Role::Text || span.role == Role::Response || span.role == Role::System) {
                        keep = text++ < settings.text_budget;
                    }
                }
                kept.back().push_back(keep);
            }
        }
    }
    return kept;
}

Kept naive_omnipick(const Ledger & ledger, const PickSettings & settings) {
    const auto & units = ledger.units();
    std::vector<uint32_t> starts;  // of the windows, narrowest first
    for (const bool media_only : {true, false}) {
        for (auto u = static_cast<uint32_t>(units.size()); u-- > 0;) {
            if (is_system(ledger, u) || units[u].tokens() == 0) continue;
            if (!media_only || units[u].kind == UnitKind::Media) starts.push_back(u);
        }
        if (!starts.empty()) break;
    }
    if (starts.empty()) return steps_1_to_3(ledger, settings, 0);

    Kept kept = steps_1_to_3(ledger, settings, starts[0]);
    for (uint32_t n = 2; n <= starts.size(); ++n) {
        const Kept wider = steps_1_to_3(ledger, settings, starts[n - 1]);
        const bool ok = settings.recent_units != 0 ? n <= settings.recent_units
                                                   : count(wider) <= settings.low_watermark;
        if (ok) kept = wider;
    }
    uint32_t newest = static_cast<uint32_t>(units.size());
    while (units[--newest].tokens() == 0) {}
    for (const bool partial : {true, false}) {
        for (uint32_t u = 0; u < newest; ++u) {
            if (is_system(ledger, u) || count(kept) <= settings.low_watermark) continue;
            const bool is_partial = units[u].partial || count(kept[u]) < units[u].tokens();
            if (count(kept[u]) > 0 && is_partial == partial) kept[u].assign(units[u].tokens(), false);
        }
    }
    return kept;
}

Kept planned(const Ledger & ledger, const RetentionPlan & plan) {
    Kept kept;
    for (const Unit & unit : ledger.units()) kept.emplace_back(unit.tokens(), true);
    for (const UnitCut & cut : plan.cuts) {
        std::fill(kept[cut.unit].begin(), kept[cut.unit].end(), false);
        for (const KeepRange & range : cut.keep) {
            uint32_t start = 0;
            for (uint32_t s = 0; s < range.span; ++s) start += ledger.units()[cut.unit].spans[s].length;
            for (uint32_t i = range.begin; i < range.end; ++i) kept[cut.unit][start + i] = true;
        }
    }
    return kept;
}

void add_random_unit(Builder & b, Random & random) {
    const auto image = [&](Role role) { return run(role, random.between(1, 30), random.between(0, 6)); };
    std::vector<Span> spans;
    const auto kind = static_cast<UnitKind>(random.between(1, 3));
    if (kind == UnitKind::Media) {
        spans.push_back(run(Role::Boundary, 1));
        if (random.chance(30)) spans.push_back(image(Role::ImageSource));
        for (uint32_t n = random.below(3); n > 0; --n) spans.push_back(image(Role::ImageSlice));
        if (random.chance(70)) spans.push_back(run(Role::Audio, random.between(1, 12)));
    } else if (kind == UnitKind::Question) {
        if (random.chance(80)) spans.push_back(run(Role::Boundary, 2));
        spans.push_back(run(random.chance(90) ? Role::Text : Role::System, random.between(1, 15)));
    } else if (random.chance(90)) {
        spans.push_back(run(Role::Response, random.between(1, 20)));
    }
    b.add(kind, spans);
}

PickSettings random_settings(Random & random) {
    PickSettings settings;
    settings.high_watermark = random.between(20, 300);
    settings.low_watermark = random.between(10, settings.high_watermark);
    settings.recent_units = random.chance(50) ? 0 : random.between(1, 4);
    settings.image_sinks = random.below(6);
    settings.audio_sinks = random.below(6);
    settings.text_budget = random.below(60);
    settings.sinks = random.below(6);
    return settings;
}

// What holds for every policy that deletes (docs/omnipick.md, "Invariants").
void check_plan(const Ledger & before, const PickSettings & settings, const RetentionPlan & plan) {
    const Kept kept = planned(before, plan);
    CHECK_EQ(plan.triggered, !plan.cuts.empty());
    CHECK_EQ(plan.before_tokens, before.tokens());
    CHECK_EQ(plan.after_tokens, count(kept));
    for (const UnitCut & cut : plan.cuts) {
        CHECK(count(kept[cut.unit]) < before.units()[cut.unit].tokens());
        CHECK(!is_system(before, cut.unit));
    }

    Ledger after = before;
    const CutResult result = after.cut(plan.cuts, true);
    CHECK_EQ(after.tokens(), plan.after_tokens);
    if (plan.triggered) CHECK_EQ(after.units().size(), plan.full_units + plan.partial_units);
    CHECK_EQ(before.units().size(), plan.full_units + plan.partial_units + plan.dropped_units);
    const auto partial = std::count_if(after.units().begin(), after.units().end(),
                                       [](const Unit & unit) { return unit.partial; });
    if (plan.triggered) CHECK_EQ(static_cast<size_t>(partial), plan.partial_units);
    CHECK(before.tokens() == 0 || after.tokens() > 0);

    std::vector<Cell> order, wanted;
    for (const Unit & unit : after.units()) order.insert(order.end(), unit.cells.begin(), unit.cells.end());
    for (uint32_t u = 0; u < kept.size(); ++u) {
        for (uint32_t i = 0; i < kept[u].size(); ++i) {
            if (kept[u][i]) wanted.push_back(before.units()[u].cells[i]);
        }
    }
    CHECK(order == wanted);  // kept tokens keep their order
    for (const Shift & shift : result.shifts) CHECK(shift.delta < 0);
    if (!before.units().empty() && is_system(before, 0)) CHECK_EQ(after.units()[0].spans[0].rotations, 0u);

    // Planning again at once deletes nothing unless still above the high watermark.
    if (after.tokens() <= settings.high_watermark) CHECK(!plan_retention(after, settings).triggered);
}

}  // namespace

TEST(random_histories_are_retained_as_the_four_steps_say) {
    uint32_t triggered = 0;
    for (uint32_t seed = 0; seed < 600 && !check::failed(); ++seed) {
        Random random(seed);
        Builder b(seed % 2 == 0);
        if (random.chance(80)) b.system(random.between(1, 12));
        PickSettings settings = random_settings(random);
        for (int step = 0; step < 60 && !check::failed(); ++step) {
            add_random_unit(b, random);
            if (random.chance(60)) continue;
            if (random.chance(20)) settings = random_settings(random);
            // Other policies leave pieces and partial units that OmniPick must then cope with.
            settings.policy = random.chance(80) ? Policy::OmniPick : static_cast<Policy>(random.below(5));
            const RetentionPlan plan = plan_retention(b.ledger, settings);
            check_plan(b.ledger, settings, plan);
            if (settings.policy == Policy::OmniPick && b.ledger.tokens() > settings.high_watermark) {
                CHECK(planned(b.ledger, plan) == naive_omnipick(b.ledger, settings));
            }
            triggered += plan.triggered;
            b.ledger.cut(plan.cuts, random.chance(70));
        }
    }
    CHECK(triggered > 1000);
}

}  // namespace ot
