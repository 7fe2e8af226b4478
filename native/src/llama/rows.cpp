#include "llama/rows.h"

#include "llama/access.h"
#include "llama/original_keys.h"
#include "llama/relocation.h"
#include "llama/rope_tables.h"
#include "llama-context.h"

#include <ggml-backend.h>
#include <ggml-cpp.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace ot {
namespace {

constexpr int32_t kFarthestShift = (1 << 30) - 1;  // and as far again back to position 0 stays an int32_t

// What is known of how keys are stored, bit by bit. The first two of `turned`.
constexpr uint32_t kRotationFollows = 4;  // rotation_id and the context's size
constexpr uint32_t kRowsFollow = 8;       // behind these, those of another cache
constexpr uint32_t kStateFollows = 16;    // behind these, the recurrent layers' state

// Consecutive cells [begin, begin + length), whose first is row `row` of what is saved.
struct Run {
    size_t begin, length, row;
};

std::vector<Run> runs_of(const std::vector<uint32_t> & cells) {
    std::vector<Run> runs;
    for (size_t i = 0; i < cells.size(); ++i) {
        if (!runs.empty() && runs.back().begin + runs.back().length == cells[i]) {
            runs.back().length += 1;
        } else {
            runs.push_back({cells[i], 1, i});
        }
    }
    return runs;
}

// What a layer's rows look like.
struct Shape {
    uint32_t layer;
    int32_t key_type, value_type;
    uint64_t key_bytes, value_bytes;

    bool operator==(const Shape & other) const {
        return layer == other.layer && key_type == other.key_type && value_type == other.value_type && key_bytes == other.key_bytes &&
               value_bytes == other.value_bytes;
    }
};

ggml_tensor * keys_of(llama_kv_cache & cache, uint32_t layer) { return cache.get_k_storage(static_cast<int32_t>(layer)); }

Shape shape_of(llama_kv_cache & cache, uint32_t layer) {
    const ggml_tensor * keys = keys_of(cache, layer);
    const ggml_tensor * values = value_storage(cache, layer);
    return {layer, keys->type, values->type, ggml_row_size(keys->type, keys->ne[0]), ggml_row_size(values->type, values->ne[0])};
}

// Quantized keys and values may be kept turned by a Hadamard matrix; which, llama.cpp decides.
uint32_t turned(llama_kv_cache & cache) {
    const ggml_init_params params{ggml_tensor_overhead() * 4, nullptr, true};
    ggml_context_ptr scratch{ggml_init(params)};
    return (cache.build_input_k_rot(scratch.get()) ? 1u : 0u) | (cache.build_input_v_rot(scratch.get()) ? 2u : 0u);
}

uint32_t bits_of(const Following & following) { return (following.rows ? kRowsFollow : 0) | (following.state ? kStateFollows : 0); }

void get_rows(const ggml_tensor * tensor, size_t row_bytes, const std::vector<Run> & runs, uint8_t * to) {
    for (const Run & run : runs) ggml_backend_tensor_get(tensor, to + run.row * row_bytes, run.begin * row_bytes, run.length * row_bytes);
}

void set_rows(ggml_tensor * tensor, size_t row_bytes, const std::vector<Run> & runs, const uint8_t * from) {
    for (const Run & run : runs) ggml_backend_tensor_set(tensor, from + run.row * row_bytes, run.begin * row_bytes, run.length * row_bytes);
}

// Flash attention off: element j of cell c lies at [j * n_cells + c]. Columns turn into rows, and back.
template <typename Copy>
void each_element(const ggml_tensor * values, const std::vector<uint32_t> & cells, Copy copy) {
    const size_t element = ggml_type_size(values->type);
    const auto width = static_cast<size_t>(values->ne[0]);
    const auto n_cells = static_cast<size_t>(values->ne[1]);
    for (size_t j = 0; j < width; ++j) {
        for (size_t i = 0; i < cells.size(); ++i) copy((i * width + j) * element, (j * n_cells + cells[i]) * element, element);
    }
}

void get_columns(const ggml_tensor * values, const std::vector<uint32_t> & cells, std::vector<uint8_t> & scratch, uint8_t * to) {
    scratch.resize(ggml_nbytes(values));
    ggml_backend_tensor_get(values, scratch.data(), 0, scratch.size());
    each_element(values, cells, [&](size_t row, size_t column, size_t n) { std::memcpy(to + row, scratch.data() + column, n); });
}

void set_columns(ggml_tensor * values, const std::vector<uint32_t> & cells, std::vector<uint8_t> & scratch, const uint8_t * from) {
    scratch.assign(ggml_nbytes(values), 0);
    each_element(values, cells, [&](size_t row, size_t column, size_t n) { std::memcpy(scratch.data() + column, from + row, n); });
    ggml_backend_tensor_set(values, scratch.data(), 0, scratch.size());
}

}  // namespace

void write_rows(const llama_context & context, llama_kv_cache & cache, const OriginalKeys & original_keys, const std::vector<uint32_t> & cells,
                const Following & following, ByteWriter & out) {
    const std::vector<uint32_t> layers = cache.get_layer_ids();
    const std::vector<Run> runs = runs_of(cells);
    std::vector<uint32_t> slots;
    std::vector<uint32_t> kept;  // rows with an original key
    for (size_t i = 0; i < cells.size(); ++i) {
        if (!original_keys.has(cells[i])) continue;
        kept.push_back(static_cast<uint32_t>(i));
        slots.push_back(static_cast<uint32_t>(original_keys.slot(cells[i])));
    }

    out.put(turned(cache) | kRotationFollows | bits_of(following));
    out.put(rotation_id(context, layers));
    out.put(context.get_cparams().n_ctx_seq);
    out.put(static_cast<uint32_t>(layers.size()));
    out.put(static_cast<uint32_t>(cells.size()));
    out.put(static_cast<uint32_t>(kept.size()));
    for (const uint32_t layer : layers) {
        const Shape shape = shape_of(cache, layer);
        out.put(shape.layer);
        out.put(shape.key_type);
        out.put(shape.key_bytes);
        out.put(shape.value_type);
        out.put(shape.value_bytes);
    }
    for (const uint32_t row : kept) {
        out.put(row);
        out.put(original_keys.shifted_by(cells[row]));
    }

    std::vector<uint8_t> scratch;
    for (const uint32_t layer : layers) {
        const Shape shape = shape_of(cache, layer);
        const ggml_tensor * values = value_storage(cache, layer);
        if (uint8_t * to = out.room(cells.size() * shape.key_bytes)) get_rows(keys_of(cache, layer), shape.key_bytes, runs, to);
        if (uint8_t * to = out.room(cells.size() * shape.value_bytes)) {
            if (access::is_v_transposed(cache)) {
                get_columns(values, cells, scratch, to);
            } else {
                get_rows(values, shape.value_bytes, runs, to);
            }
        }
        if (uint8_t * to = out.room(slots.size() * shape.key_bytes); to && !slots.empty()) {
            get_rows(original_keys.tensor(layer), shape.key_bytes, runs_of(slots), to);
        }
    }
}

SavedRows SavedRows::parse(const llama_context & context, llama_kv_cache & cache, uint32_t n_rows, const Following & following, ByteReader & in) {
    const std::vector<uint32_t> layers = cache.get_layer_ids();
    const auto stored = in.get<uint32_t>();
    const uint32_t saved_turned = stored & ~(kRotationFollows | kRowsFollow | kStateFollows);
    const bool has_rotation = (stored & kRotationFollows) != 0;  // older files know nothing of it
    const auto saved_rotation = has_rotation ? in.get<uint64_t>() : 0;
    const auto saved_ctx = has_rotation ? in.get<uint32_t>() : 0;
    const auto n_layers = in.get<uint32_t>();
    const auto saved_rows = in.get<uint32_t>();
    const uint32_t n_untouched = in.get_count(sizeof(uint32_t) + sizeof(int32_t));
    if ((stored & (kRowsFollow | kStateFollows)) != bits_of(following)) throw StateError{"it was saved with a model of another kind of memory"};
    if (n_layers != layers.size()) {
        throw StateError{"it was saved with a model of " + std::to_string(n_layers) + " layers, this one has " + std::to_string(layers.size())};
    }
    if (saved_rows != n_rows || n_untouched > n_rows) throw StateError{"its number of rows differs from its number of tokens"};

    SavedRows rows;
    for (const uint32_t layer : layers) {
        Shape saved;
        saved.layer = in.get<uint32_t>();
        saved.key_type = in.get<int32_t>();
        saved.key_bytes = in.get<uint64_t>();
        saved.value_type = in.get<int32_t>();
        saved.value_bytes = in.get<uint64_t>();
        const Shape shape = shape_of(cache, layer);
        if (saved.key_type != shape.key_type || saved.value_type != shape.value_type || saved_turned != turned(cache)) {
            throw StateError{"it was saved with another type of cache"};
        }
        if (!(saved == shape)) throw StateError{"it was saved with a model of another shape"};
        rows.layers_.push_back({layer, shape.key_bytes, shape.value_bytes, nullptr, nullptr, nullptr});
    }
    if (has_rotation && saved_rotation != rotation_id(context, layers)) {
        throw StateError{"its keys were rotated by other frequencies, which this model chooses by the size of the context: it was saved with " +
                         std::to_string(saved_ctx) + " cells (--ctx), this one has " + std::to_string(context.get_cparams().n_ctx_seq)};
    }
    rows.untouched_.reserve(n_untouched);
    for (uint32_t i = 0; i < n_untouched; ++i) {
        const auto row = in.get<uint32_t>();
        const auto shifted_by = in.get<int32_t>();
        const bool ascends = rows.untouched_.empty() || row > rows.untouched_.back().row;
        if (row >= n_rows || !ascends || shifted_by > kFarthestShift || shifted_by < -kFarthestShift) {
            throw StateError{"its original keys are damaged"};
        }
        rows.untouched_.push_back({row, shifted_by});
    }
    for (Layer & layer : rows.layers_) {
        layer.keys = in.take(n_rows * layer.key_bytes);
        layer.values = in.take(n_rows * layer.value_bytes);
        layer.untouched = in.take(n_untouched * layer.key_bytes);
    }
    return rows;
}

void SavedRows::load(llama_kv_cache & cache, OriginalKeys & original_keys, const std::vector<uint32_t> & cells) const {
    const std::vector<Run> runs = runs_of(cells);
    // Without memory for them the stored keys are rotated again and again, as in a session that ran into that itself.
    const bool keep = !untouched_.empty() && original_keys.allocate();
    std::vector<uint32_t> slots;
    if (keep) {
        for (const Untouched & key : untouched_) slots.push_back(static_cast<uint32_t>(original_keys.claim(cells[key.row], key.shifted_by)));
    }
    std::vector<uint8_t> scratch;
    for (const Layer & layer : layers_) {
        set_rows(keys_of(cache, layer.id), layer.key_bytes, runs, layer.keys);
        ggml_tensor * values = value_storage(cache, layer.id);
        if (access::is_v_transposed(cache)) {
            set_columns(values, cells, scratch, layer.values);
        } else {
            set_rows(values, layer.value_bytes, runs, layer.values);
        }
        if (keep) set_rows(original_keys.tensor(layer.id), layer.key_bytes, runs_of(slots), layer.untouched);
    }
}

}  // namespace ot
