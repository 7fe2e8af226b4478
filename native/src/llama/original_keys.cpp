#include "llama/original_keys.h"

#include "llama-kv-cache.h"

#include <ggml-backend.h>
#include <ggml-cpp.h>

#include <map>
#include <unordered_map>
#include <utility>

namespace ot {

struct OriginalKeys::Storage {
    std::vector<ggml_context_ptr> contexts;
    std::vector<ggml_backend_buffer_ptr> buffers;
    std::unordered_map<uint32_t, ggml_tensor *> by_layer;
};

OriginalKeys::OriginalKeys(llama_kv_cache & cache) : OriginalKeys(cache, cache.get_size()) {}

OriginalKeys::OriginalKeys(llama_kv_cache & cache, uint32_t n_slots) : cache_(cache), entries_(cache.get_size()), n_slots_(n_slots) {
    free_slots_.reserve(n_slots);
    for (uint32_t slot = n_slots; slot-- > 0;) free_slots_.push_back(static_cast<int32_t>(slot));
}

OriginalKeys::~OriginalKeys() = default;

bool OriginalKeys::allocate() {
    if (storage_) return true;
    if (refused_) return false;
    auto storage = std::make_unique<Storage>();
    // Each layer's copy lies where its keys lie: a model may be spread over devices.
    std::map<ggml_backend_buffer_type_t, std::vector<uint32_t>> by_type;
    for (const uint32_t layer : cache_.get_layer_ids()) {
        by_type[ggml_backend_buffer_get_type(cache_.get_k_storage(static_cast<int32_t>(layer))->buffer)].push_back(layer);
    }
    for (const auto & [type, layers] : by_type) {
        const ggml_init_params params{ggml_tensor_overhead() * layers.size(), nullptr, true};
        ggml_context_ptr ctx{ggml_init(params)};
        for (const uint32_t layer : layers) {
            const ggml_tensor * keys = cache_.get_k_storage(static_cast<int32_t>(layer));
            storage->by_layer[layer] = ggml_new_tensor_2d(ctx.get(), keys->type, keys->ne[0], static_cast<int64_t>(n_slots_));
        }
        ggml_backend_buffer_ptr buffer{ggml_backend_alloc_ctx_tensors_from_buft(ctx.get(), type)};
        if (!buffer) {
            refused_ = true;
            return false;
        }
        storage->contexts.push_back(std::move(ctx));
        storage->buffers.push_back(std::move(buffer));
    }
    storage_ = std::move(storage);
    return true;
}

void OriginalKeys::give_up() {
    storage_.reset();
    refused_ = true;
}

ggml_tensor * OriginalKeys::tensor(uint32_t layer) const { return storage_->by_layer.at(layer); }

uint64_t OriginalKeys::bytes() const {
    uint64_t total = 0;
    if (storage_) {
        for (const auto & buffer : storage_->buffers) total += ggml_backend_buffer_get_size(buffer.get());
    }
    return total;
}

int32_t OriginalKeys::claim(uint32_t cell, int32_t shifted_by) {
    entries_[cell] = {free_slots_.back(), shifted_by};
    free_slots_.pop_back();
    return entries_[cell].slot;
}

void OriginalKeys::release(uint32_t cell) {
    if (has(cell)) free_slots_.push_back(entries_[cell].slot);
    entries_[cell] = {};
}

void OriginalKeys::clear() {
    for (uint32_t cell = 0; cell < entries_.size(); ++cell) release(cell);
}

OriginalKeys::Entry OriginalKeys::take(uint32_t cell) { return std::exchange(entries_[cell], {}); }

}  // namespace ot
