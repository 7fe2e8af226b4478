// OmniPick: which history stays. Section 5 of the OmniTide paper; what it leaves open is decided here.
//
// A policy is a pure function (ledger, settings) -> RetentionPlan: same input, same plan. H2O alone reads attention, as the
// scores that the ledger has of it.
#pragma once

#include "ledger/ledger.h"

#include <cstdint>
#include <vector>

namespace ot {

// The values are part of the C API (OT_POLICY_*).
enum class Policy : uint8_t { Full, OmniPick, Fifo, Token, StreamingLlm, H2o };

struct PickSettings {
    Policy policy = Policy::OmniPick;
    uint32_t high_watermark = 2500;  // retention starts above this many history tokens
    uint32_t low_watermark = 1800;   // and aims at this many
    uint32_t recent_units = 0;       // newest media units kept whole; 0 = as many as fit the low watermark
    uint32_t image_sinks = 4;        // first tokens kept of each image span of an older unit
    uint32_t audio_sinks = 4;        // the same for sound
    uint32_t text_budget = 256;      // tokens of older text and responses together
    uint32_t sinks = 2;              // streaming-llm: first tokens after the system unit
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

// Dispatches to the policy. Returns an untriggered plan when history <= high watermark or the policy is `full`.
RetentionPlan plan_retention(const Ledger & ledger, const PickSettings & settings);

}  // namespace ot
