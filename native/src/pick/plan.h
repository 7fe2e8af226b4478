// What the policies share. For the policies alone.
#pragma once

#include "pick/pick.h"

#include <cstdint>
#include <vector>

namespace ot {

// Each policy expects a history above the high watermark.
RetentionPlan plan_omnipick(const Ledger & ledger, const PickSettings & settings);
RetentionPlan plan_fifo(const Ledger & ledger, const PickSettings & settings);
RetentionPlan plan_token(const Ledger & ledger, const PickSettings & settings);
RetentionPlan plan_streaming_llm(const Ledger & ledger, const PickSettings & settings);
RetentionPlan plan_h2o(const Ledger & ledger, const PickSettings & settings);

// Units [evictable_begin, evictable_end) may be dropped whole: not the system unit, nor the newest that has tokens.
uint32_t evictable_begin(const Ledger & ledger);
uint32_t evictable_end(const Ledger & ledger);

// Tokens behind the system unit.
uint32_t evictable_tokens(const Ledger & ledger);

// Counts what `cuts` (ascending; only units that lose a token) make of the ledger.
RetentionPlan finish_plan(const Ledger & ledger, std::vector<UnitCut> cuts);

// Deletes tokens [begin, end) of the history behind the system unit, regardless of borders.
RetentionPlan delete_range(const Ledger & ledger, uint32_t begin, uint32_t end);

}  // namespace ot
