// Whether what came from outside is a ledger.
#pragma once

#include "ledger/ledger.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ot {

// No session comes near; below it, no sum of positions overflows.
inline constexpr Position kMostPositions = 1 << 30;
inline constexpr uint32_t kLongestSpan = 1 << 24;

// Which invariant of ledger.h `units` break, as a text; empty when they may become a Ledger whose cells are below
// `n_cells`. Safe for any values.
std::string violation(const std::vector<Unit> & units, bool mrope, uint64_t next_id, Position next_position, uint32_t n_cells);

}  // namespace ot
