// OmniPick: which history stays. Section 5 of the OmniTide paper; what it leaves open is decided here.
//
// A policy is a pure function (ledger, settings) -> RetentionPlan: same input, same plan. Those that read attention take
// the scores that the ledger has of it. policies.def lists them.
#pragma once

#include "knob.h"
#include "ledger/ledger.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ot {

enum class Policy : uint8_t {
#define POLICY(value, Enumerator, name, reads, sentence, knobs) Enumerator = value,
#include "pick/policies.def"
};

struct PickSettings;

// A policy of the caller's own: for each token, in history order, whether it stays. Throws PolicyError to give up.
using KeepRule = std::function<std::vector<bool>(const Ledger & ledger, const PickSettings & settings)>;

struct PolicyError {
    std::string what;
};

struct PickSettings {
    Policy policy = Policy::OmniPick;
    uint32_t high_watermark = 2500;  // retention starts above this many history tokens
    uint32_t low_watermark = 1800;   // and aims at this many

    KeepRule rule;                      // in place of `policy`, if there is one
    bool rule_reads_attention = false;

#define KNOB(type, name, value, least, metavar, sentence) type name = value;
#define POLICY(value, Enumerator, name, reads, sentence, knobs) knobs
#include "pick/policies.def"
};

struct RetentionPlan {
    bool triggered = false;      // history was above the high watermark and the policy deletes something
    std::vector<UnitCut> cuts;   // every unit that loses a token, ascending
    uint32_t before_tokens = 0;
    uint32_t after_tokens = 0;
    uint32_t full_units = 0;     // units left whole (system unit included)
    uint32_t partial_units = 0;  // units of which a part is left
    uint32_t dropped_units = 0;  // units that vanish in this plan
};

// Dispatches to the policy. Returns an untriggered plan when history <= high watermark or the policy deletes nothing.
// Throws PolicyError where the caller's own rule does, or where it lets go what must stay: the system unit, and of the
// newest unit the last token.
RetentionPlan plan_retention(const Ledger & ledger, const PickSettings & settings);

// Whether scores have to be counted, and whether anything is ever deleted.
bool reads_attention(const PickSettings & settings);
bool deletes(const PickSettings & settings);

// A line of policies.def.
struct PolicyEntry {
    Policy policy;
    const char * name;  // with underscores
    bool reads_attention;
    RetentionPlan (*plan)(const Ledger & ledger, const PickSettings & settings);
};

const std::vector<PolicyEntry> & policies();

// Sets the knob of that name.
KnobFit set_knob(PickSettings & settings, std::string_view name, double value);

}  // namespace ot
