// A history as bytes: what of it a saved session holds. Pure.
#pragma once

#include "bytes.h"
#include "session/history.h"

#include <cstdint>

namespace ot {

void write_history(const History & history, ByteWriter & out);

// The history that was written, in a cache of `n_cells` and under `settings`, which may be others than it was saved
// with. Throws StateError for what is no history, or one that this cache or model can't hold.
History read_history(ByteReader & in, bool mrope, uint32_t n_cells, const HistorySettings & settings);

}  // namespace ot
