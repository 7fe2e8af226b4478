#include "llama/single_rows.h"

#include "llama/access.h"
#include "llama/memory.h"
#include "llama/original_keys.h"
#include "llama/relocation.h"

#include "llama-model.h"

#include <ggml-backend.h>
#include <ggml-cpp.h>

#include <cstring>
#include <stdexcept>

namespace ot {
namespace {

// One layer's part of a row.
struct Part {
    const CachePart * cache;
    uint32_t layer;
    ggml_tensor * keys;
    ggml_tensor * values;
    size_t key_bytes, value_bytes;
    size_t offset;  // of the key, in a row; the value follows
};

struct Parts {
    std::vector<Part> layers;
    size_t row = 0;  // bytes
};

Parts parts_of(const CacheHandle & handle) {
    Parts parts;
    for (const auto & part : handle.parts()) {
        for (const uint32_t layer : part->layers()) {
            ggml_tensor * keys = part->keys(layer);
            ggml_tensor * values = value_storage(part->cache(), layer);
            const size_t key_bytes = ggml_row_size(keys->type, keys->ne[0]), value_bytes = ggml_row_size(values->type, values->ne[0]);
            parts.layers.push_back({part.get(), layer, keys, values, key_bytes, value_bytes, parts.row});
            parts.row += key_bytes + value_bytes;
        }
    }
    return parts;
}

// Neighbouring cells in one call: on a GPU each call waits. Row i of `scratch` is that of cells[i].
template <typename Transfer>
void each_run(const std::vector<uint32_t> & cells, Transfer transfer) {
    for (size_t begin = 0, end; begin < cells.size(); begin = end) {
        for (end = begin + 1; end < cells.size() && cells[end] == cells[end - 1] + 1; ++end) {
        }
        transfer(begin, cells[begin], end - begin);
    }
}

void get_all(const ggml_tensor * tensor, size_t bytes, const std::vector<uint32_t> & cells, std::vector<uint8_t> & scratch) {
    scratch.resize(cells.size() * bytes);
    each_run(cells, [&](size_t row, size_t cell, size_t n) { ggml_backend_tensor_get(tensor, scratch.data() + row * bytes, cell * bytes, n * bytes); });
}

void set_all(ggml_tensor * tensor, size_t bytes, const std::vector<uint32_t> & cells, const std::vector<uint8_t> & scratch) {
    each_run(cells, [&](size_t row, size_t cell, size_t n) { ggml_backend_tensor_set(tensor, scratch.data() + row * bytes, cell * bytes, n * bytes); });
}

// Flash attention off: element j of cell c lies at [j * n_cells + c]. Calls with the place of each in a row and there.
template <typename Copy>
void each_element(const ggml_tensor * values, const std::vector<uint32_t> & cells, Copy copy) {
    const size_t element = ggml_type_size(values->type);
    const auto width = static_cast<size_t>(values->ne[0]), n_cells = static_cast<size_t>(values->ne[1]);
    for (size_t j = 0; j < width; ++j) {
        for (size_t i = 0; i < cells.size(); ++i) copy((i * width + j) * element, (j * n_cells + cells[i]) * element, element);
    }
}

// As get_all, whatever the order of values; without a copy of the whole tensor where it lies in this process's memory.
void get_values(const ggml_tensor * values, size_t bytes, bool transposed, const std::vector<uint32_t> & cells, std::vector<uint8_t> & scratch) {
    if (!transposed) return get_all(values, bytes, cells, scratch);
    scratch.resize(cells.size() * bytes);
    std::vector<uint8_t> copied;
    const auto * from = static_cast<const uint8_t *>(values->data);
    if (!ggml_backend_buffer_is_host(values->buffer)) {
        copied.resize(ggml_nbytes(values));
        ggml_backend_tensor_get(values, copied.data(), 0, copied.size());
        from = copied.data();
    }
    each_element(values, cells, [&](size_t row, size_t there, size_t n) { std::memcpy(scratch.data() + row, from + there, n); });
}

void set_values(ggml_tensor * values, size_t bytes, bool transposed, const std::vector<uint32_t> & cells, const std::vector<uint8_t> & scratch) {
    if (!transposed) return set_all(values, bytes, cells, scratch);
    if (ggml_backend_buffer_is_host(values->buffer)) {
        auto * to = static_cast<uint8_t *>(values->data);
        each_element(values, cells, [&](size_t row, size_t there, size_t n) { std::memcpy(to + there, scratch.data() + row, n); });
        return;
    }
    std::vector<uint8_t> whole(ggml_nbytes(values));
    ggml_backend_tensor_get(values, whole.data(), 0, whole.size());
    each_element(values, cells, [&](size_t row, size_t there, size_t n) { std::memcpy(whole.data() + there, scratch.data() + row, n); });
    ggml_backend_tensor_set(values, whole.data(), 0, whole.size());
}

// The size of the blocks by which a cache of this kind keeps its keys turned; 0: as they are.
uint32_t hadamard_block(llama_kv_cache & cache) {
    const ggml_init_params params{ggml_tensor_overhead() * 2, nullptr, true};
    ggml_context_ptr scratch{ggml_init(params)};
    const ggml_tensor * matrix = cache.build_input_k_rot(scratch.get());
    return matrix ? static_cast<uint32_t>(matrix->ne[0]) : 0;
}

void to_floats(ggml_type type, const uint8_t * from, float * to, int64_t n) {
    if (type == GGML_TYPE_F32) {
        std::memcpy(to, from, static_cast<size_t>(n) * sizeof(float));
    } else {
        ggml_get_type_traits(type)->to_float(from, to, n);
    }
}

}  // namespace

size_t row_size(const CacheHandle & cache) { return parts_of(cache).row; }

SingleRows read_single_rows(const CacheHandle & cache, const std::vector<uint32_t> & cells) {
    cache.synchronize();
    const OriginalKeys & original_keys = cache.parts().front()->original_keys();  // caches put aside the same tokens' keys
    const Parts parts = parts_of(cache);
    const bool transposed = cache.transposed_values();
    SingleRows rows;
    rows.bytes.resize(cells.size() * parts.row);
    std::vector<uint32_t> kept_cells, slots;
    std::vector<size_t> kept;  // tokens whose original key was put aside
    for (size_t i = 0; i < cells.size(); ++i) {
        rows.shifted_by.push_back(original_keys.has(cells[i]) ? original_keys.shifted_by(cells[i]) : 0);
        if (!original_keys.has(cells[i])) continue;
        kept.push_back(i);
        kept_cells.push_back(cells[i]);
    }
    std::vector<uint8_t> scratch;
    for (const Part & part : parts.layers) {
        uint8_t * to = rows.bytes.data() + part.offset;
        if (kept.size() < cells.size()) {
            get_all(part.keys, part.key_bytes, cells, scratch);
            for (size_t i = 0; i < cells.size(); ++i) std::memcpy(to + i * parts.row, scratch.data() + i * part.key_bytes, part.key_bytes);
        }
        if (!kept.empty()) {
            slots.clear();
            for (const uint32_t cell : kept_cells) slots.push_back(static_cast<uint32_t>(part.cache->original_keys().slot(cell)));
            get_all(part.cache->original_keys().tensor(part.layer), part.key_bytes, slots, scratch);
            for (size_t i = 0; i < kept.size(); ++i) std::memcpy(to + kept[i] * parts.row, scratch.data() + i * part.key_bytes, part.key_bytes);
        }
        get_values(part.values, part.value_bytes, transposed, cells, scratch);
        to += part.key_bytes;
        for (size_t i = 0; i < cells.size(); ++i) std::memcpy(to + i * parts.row, scratch.data() + i * part.value_bytes, part.value_bytes);
    }
    return rows;
}

void write_single_rows(const CacheHandle & cache, const std::vector<uint32_t> & cells, const std::vector<uint8_t> & bytes) {
    cache.synchronize();
    const Parts parts = parts_of(cache);
    if (bytes.size() != cells.size() * parts.row) throw std::length_error("archived rows are of another size than the cache's");
    std::vector<uint8_t> scratch;
    for (const Part & part : parts.layers) {
        const uint8_t * from = bytes.data() + part.offset;
        scratch.resize(cells.size() * part.key_bytes);
        for (size_t i = 0; i < cells.size(); ++i) std::memcpy(scratch.data() + i * part.key_bytes, from + i * parts.row, part.key_bytes);
        set_all(part.keys, part.key_bytes, cells, scratch);
        from += part.key_bytes;
        scratch.resize(cells.size() * part.value_bytes);
        for (size_t i = 0; i < cells.size(); ++i) std::memcpy(scratch.data() + i * part.value_bytes, from + i * parts.row, part.value_bytes);
        set_values(part.values, part.value_bytes, cache.transposed_values(), cells, scratch);
    }
}

std::vector<float> bare_keys(const CacheHandle & cache, const llama_context & context, uint32_t layer, const std::vector<uint8_t> & bytes,
                             const std::vector<RotaryPlace> & places) {
    const Parts parts = parts_of(cache);
    const Rotation rotation{context, layer};
    const uint32_t n_heads = context.get_model().hparams.n_head_kv(layer);
    std::vector<float> keys;
    for (const Part & part : parts.layers) {
        if (part.layer != layer) continue;
        const uint32_t block = hadamard_block(part.cache->cache());
        const auto width = static_cast<size_t>(part.keys->ne[0]);
        keys.resize(places.size() * width);
        for (size_t token = 0; token < places.size(); ++token) {
            float * key = keys.data() + token * width;
            to_floats(part.keys->type, bytes.data() + token * parts.row + part.offset, key, static_cast<int64_t>(width));
            if (block > 0) turn_hadamard(key, static_cast<uint32_t>(width), block);
            rotation.undo(key, n_heads, places[token]);
        }
    }
    return keys;
}

}  // namespace ot
