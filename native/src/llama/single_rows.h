// Rows of single tokens as bytes: what the archive keeps, [token][layer](key, value), and how it gets back into the cache.
#pragma once

#include "llama/rotation.h"

#include <cstddef>
#include <cstdint>
#include <vector>

struct llama_context;

namespace ot {

class CacheHandle;

struct SingleRows {
    std::vector<uint8_t> bytes;
    std::vector<int32_t> shifted_by;  // a token: by how much the cache shows its key shifted against the one in `bytes`
};

// Bytes of a token's row over all layers.
size_t row_size(const CacheHandle & cache);

// The rows of `cells`, in that order; keys as they were before their first shift.
SingleRows read_single_rows(const CacheHandle & cache, const std::vector<uint32_t> & cells);

// Puts rows into empty cells, which are to be occupied at the positions that the keys are rotated for.
void write_single_rows(const CacheHandle & cache, const std::vector<uint32_t> & cells, const std::vector<uint8_t> & bytes);

// The keys that rows hold for one layer, [token][width], rotation taken out. `places`: where each was rotated to.
// REQUIRES: Rotation::is_known() of the layer.
std::vector<float> bare_keys(const CacheHandle & cache, const llama_context & context, uint32_t layer, const std::vector<uint8_t> & bytes,
                             const std::vector<RotaryPlace> & places);

}  // namespace ot
