#include "llama/fill.h"

#include "llama/relocation.h"
#include "llama-kv-cache.h"

#include <ggml-backend.h>

#include <algorithm>
#include <random>
#include <vector>

namespace ot {
namespace {

constexpr int64_t kBlock = 1 << 18;  // values

std::vector<uint8_t> random_block(ggml_type type, std::mt19937 & random) {
    std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
    std::vector<float> values(kBlock);
    for (float & value : values) value = uniform(random);
    std::vector<uint8_t> block(ggml_row_size(type, kBlock));
    ggml_quantize_chunk(type, values.data(), block.data(), 0, 1, kBlock, nullptr);
    return block;
}

void fill(ggml_tensor * tensor, std::mt19937 & random) {
    const std::vector<uint8_t> block = random_block(tensor->type, random);
    const size_t total = ggml_nbytes(tensor);
    for (size_t offset = 0; offset < total; offset += block.size()) {
        ggml_backend_tensor_set(tensor, block.data(), offset, std::min(block.size(), total - offset));
    }
}

}  // namespace

void fill_rows(llama_kv_cache & cache, uint32_t seed) {
    std::mt19937 random(seed);
    for (const uint32_t layer : cache.get_layer_ids()) {
        fill(cache.get_k_storage(static_cast<int32_t>(layer)), random);
        fill(value_storage(cache, layer), random);
    }
}

}  // namespace ot
