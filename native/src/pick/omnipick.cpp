// OmniPick: recent units whole, of older ones the first tokens of each picture and sound, markers, and text up to a
// budget: what attention keeps returning to; no attention is read. Section 5.1.
#include "pick/plan.h"

#include <algorithm>
#include <utility>

namespace ot {

namespace {

// How step 3 treats a span of an older unit.
enum class Rule : uint8_t { Whole, Sinks, Budget };

Rule rule_of(Role role) {
    switch (role) {
        case Role::Boundary:
        case Role::ImageSource: return Rule::Whole;
        case Role::ImageSlice:
        case Role::Audio: return Rule::Sinks;
        case Role::Text:
        case Role::Response:
        case Role::System: break;  // system text outside the system unit is text like any other
    }
    return Rule::Budget;
}

// Calls visit(span index, kept) for each span of an older unit; `kept` is the length of the prefix that stays.
// Pieces of one span share its sinks. Takes text from `budget`.
template <typename Visit>
void select_spans(const Unit & unit, const PickSettings & settings, uint32_t & budget, Visit visit) {
    uint32_t sinks = 0;
    for (uint32_t i = 0; i < unit.spans.size(); ++i) {
        const Span & span = unit.spans[i];
        uint32_t kept = span.length;
        if (!span.continues) sinks = span.role == Role::Audio ? settings.audio_sinks : settings.image_sinks;
        switch (rule_of(span.role)) {
            case Rule::Whole: break;
            case Rule::Sinks:
                kept = std::min(kept, sinks);
                sinks -= kept;
                break;
            case Rule::Budget:
                kept = std::min(kept, budget);
                budget -= kept;
                break;
        }
        visit(i, kept);
    }
}

// What step 3 leaves of a unit: a fixed part, and text as far as the budget reaches.
struct OlderCost {
    uint32_t fixed = 0;
    uint32_t text = 0;
};

OlderCost older_cost(const Unit & unit, const PickSettings & settings) {
    OlderCost cost;
    uint32_t budget = UINT32_MAX;
    uint32_t kept_tokens = 0;
    select_spans(unit, settings, budget, [&](uint32_t, uint32_t kept) { kept_tokens += kept; });
    cost.text = UINT32_MAX - budget;
    cost.fixed = kept_tokens - cost.text;
    return cost;
}

// Step 2: the unit with which the recent window begins. It begins with a media unit; where there is none, every unit
// counts as one. A wider window never needs fewer tokens, so the first one that doesn't fit ends the search.
uint32_t window_begin(const Ledger & ledger, const PickSettings & settings) {
    const std::vector<Unit> & units = ledger.units();
    const uint32_t first = evictable_begin(ledger);
    const bool has_media = std::any_of(units.begin(), units.end(), [](const Unit & unit) {
        return unit.kind == UnitKind::Media && !unit.cells.empty();
    });
    OlderCost older;  // of the units before the window
    for (uint32_t i = first; i < units.size(); ++i) {
        const OlderCost cost = older_cost(units[i], settings);
        older.fixed += cost.fixed;
        older.text += cost.text;
    }

    uint32_t begin = static_cast<uint32_t>(units.size());
    uint32_t window_tokens = first == 1 ? units[0].tokens() : 0;  // the system unit included
    uint32_t count = 0;
    for (uint32_t i = begin; i-- > first;) {
        const OlderCost cost = older_cost(units[i], settings);
        older.fixed -= cost.fixed;
        older.text -= cost.text;
        window_tokens += units[i].tokens();
        if (units[i].cells.empty() || (has_media && units[i].kind != UnitKind::Media)) continue;
        const uint32_t total = window_tokens + older.fixed + std::min(settings.text_budget, older.text);
        const bool wanted =
            settings.recent_units != 0 ? count < settings.recent_units : total <= settings.low_watermark;
        if (count > 0 && !wanted) break;
        begin = i;
        count += 1;
    }
    return begin;
}

// What is planned for one unit.
struct Selection {
    std::vector<KeepRange> keep;  // of an older unit; a recent one stays whole or goes whole
    uint32_t left = 0;            // tokens
};

std::vector<Selection> select_units(const Ledger & ledger, const PickSettings & settings) {
    const std::vector<Unit> & units = ledger.units();
    const uint32_t recent = window_begin(ledger, settings);
    uint32_t budget = settings.text_budget;
    std::vector<Selection> selections(units.size());
    for (uint32_t i = 0; i < units.size(); ++i) {
        Selection & selection = selections[i];
        selection.left = units[i].tokens();
        if (i < evictable_begin(ledger) || i >= recent) continue;
        selection.left = 0;
        select_spans(units[i], settings, budget, [&](uint32_t span, uint32_t kept) {
            if (kept > 0) selection.keep.push_back({span, 0, kept});
            selection.left += kept;
        });
    }
    return selections;
}

// Step 4: drops whole units until the target is met; the newest stays in any case.
void drop_units(const Ledger & ledger, uint32_t target, std::vector<Selection> & selections) {
    uint32_t total = 0;
    for (const Selection & selection : selections) total += selection.left;
    const uint32_t end = evictable_end(ledger);
    for (const bool partial : {true, false}) {
        for (uint32_t i = evictable_begin(ledger); i < end && total > target; ++i) {
            const Unit & unit = ledger.units()[i];
            Selection & selection = selections[i];
            const bool is_partial = unit.partial || selection.left < unit.tokens();
            if (selection.left == 0 || is_partial != partial) continue;
            total -= selection.left;
            selection = Selection{};
        }
    }
}

}  // namespace

RetentionPlan plan_omnipick(const Ledger & ledger, const PickSettings & settings) {
    std::vector<Selection> selections = select_units(ledger, settings);
    drop_units(ledger, settings.low_watermark, selections);
    std::vector<UnitCut> cuts;
    for (uint32_t i = 0; i < selections.size(); ++i) {
        if (selections[i].left < ledger.units()[i].tokens()) cuts.push_back({i, std::move(selections[i].keep)});
    }
    return finish_plan(ledger, std::move(cuts));
}

}  // namespace ot
