// What the policies share. For the policies alone.
#pragma once

#include "pick/pick.h"

#include <cstdint>
#include <vector>

namespace ot {

// Each policy expects a history above the high watermark.
#define POLICY(value, Enumerator, name, reads, sentence, knobs) \
    RetentionPlan plan_##name(const Ledger & ledger, const PickSettings & settings);
#include "pick/policies.def"

// Units [evictable_begin, evictable_end) may be dropped whole: not the system unit, nor the newest that has tokens.
uint32_t evictable_begin(const Ledger & ledger);
uint32_t evictable_end(const Ledger & ledger);

// Tokens behind the system unit.
uint32_t evictable_tokens(const Ledger & ledger);

// Counts what `cuts` (ascending; only units that lose a token) make of the ledger.
RetentionPlan finish_plan(const Ledger & ledger, std::vector<UnitCut> cuts);

// Deletes tokens [begin, end) of the history behind the system unit, regardless of borders.
RetentionPlan delete_range(const Ledger & ledger, uint32_t begin, uint32_t end);

// Keeps of the tokens behind the system unit those that `keep` says, one entry each, oldest first.
RetentionPlan keep_tokens(const Ledger & ledger, const std::vector<bool> & keep);

}  // namespace ot
