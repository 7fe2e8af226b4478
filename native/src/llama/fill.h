// Random keys and values, for benchmarks of histories that nobody wants to wait for.
#pragma once

#include <cstdint>

class llama_kv_cache;

namespace ot {

// Fills all rows of all layers. The values repeat every mebibyte or so: attention takes as long whatever they are, as
// long as they are ordinary numbers.
void fill_rows(llama_kv_cache & cache, uint32_t seed);

}  // namespace ot
