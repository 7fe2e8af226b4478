#include "llama/cache_part.h"

#include "llama/access.h"
#include "llama/rows.h"

#include <ggml-backend.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace ot {
namespace {

std::vector<float> as_floats(ggml_type type, const std::vector<uint8_t> & raw) {
    std::vector<float> row(raw.size() / ggml_type_size(type) * static_cast<size_t>(ggml_blck_size(type)));
    if (type == GGML_TYPE_F32) {
        std::memcpy(row.data(), raw.data(), raw.size());
    } else {
        ggml_get_type_traits(type)->to_float(raw.data(), row.data(), static_cast<int64_t>(row.size()));
    }
    return row;
}

std::vector<float> row_as_floats(const ggml_tensor * rows, uint32_t cell) {
    std::vector<uint8_t> raw(ggml_row_size(rows->type, rows->ne[0]));
    ggml_backend_tensor_get(rows, raw.data(), cell * raw.size(), raw.size());
    return as_floats(rows->type, raw);
}

}  // namespace

const llama_kv_cells & CachePart::cells() const { return cache_.get_cells(0); }
// The cells are ours to keep: llama.cpp has no API to write one cell's position.
llama_kv_cells & CachePart::mutable_cells() { return const_cast<llama_kv_cells &>(cells()); }

std::vector<uint32_t> CachePart::layers() const { return cache_.get_layer_ids(); }

bool CachePart::has_layer(uint32_t layer) const {
    const std::vector<uint32_t> all = layers();
    return std::find(all.begin(), all.end(), layer) != all.end();
}

ggml_tensor * CachePart::keys(uint32_t layer) const { return cache_.get_k_storage(static_cast<int32_t>(layer)); }

std::vector<float> CachePart::key_row(uint32_t layer, uint32_t cell) const { return row_as_floats(keys(layer), cell); }

std::vector<float> CachePart::value_row(uint32_t layer, uint32_t cell) const {
    const ggml_tensor * values = value_storage(cache_, layer);
    if (!access::is_v_transposed(cache_)) return row_as_floats(values, cell);
    const auto width = static_cast<size_t>(values->ne[0]);
    const size_t element = ggml_type_size(values->type), n_cells = cache_.get_size();
    std::vector<uint8_t> raw(width * element);
    for (size_t j = 0; j < width; ++j) ggml_backend_tensor_get(values, raw.data() + j * element, (j * n_cells + cell) * element, element);
    return as_floats(values->type, raw);
}

bool CachePart::is_empty(uint32_t cell) const { return cells().is_empty(cell); }
int32_t CachePart::position(uint32_t cell) const { return is_empty(cell) ? -1 : cells().pos_get(cell); }

void CachePart::remove(uint32_t cell) {
    if (is_empty(cell)) return;
    mutable_cells().rm(cell);
    original_keys_.release(cell);
}

void CachePart::hide(uint32_t cell) {
    if (!is_empty(cell)) mutable_cells().rm(cell);
}

void CachePart::occupy(const PlacedCell & place) {
    llama_kv_cells & cells = mutable_cells();
    llama_kv_cell_ext ext;
    ext.x = place.x;
    ext.y = place.y;
    cells.pos_set(place.cell, place.t);
    cells.ext_set(place.cell, ext);
    cells.seq_add(place.cell, 0);
}

bool CachePart::relocate(llama_context & context, const std::vector<Row> & rows, const std::vector<uint32_t> & freed) {
    for (const uint32_t cell : freed) original_keys_.release(cell);
    // Where all layers see a window, the cache of the others has none.
    if (!layers().empty() && !relocator_.run(context, cache_, original_keys_, rows)) return false;
    move_cells(rows, freed);
    return true;
}

bool CachePart::try_shift(llama_context & context, const Row & row) const {
    if (layers().empty()) return true;
    OriginalKeys original{cache_, 1};
    return Relocator{}.run(context, cache_, original, {row});
}

// Writes all cells anew: most of them change, and llama.cpp keeps two ordered sets of them, in which building costs less
// than moving one by one. Never cells.pos_add: it marks a pending K-shift.
void CachePart::move_cells(const std::vector<Row> & rows, const std::vector<uint32_t> & freed) {
    struct Saved {
        llama_pos position;
        uint32_t cell;
        llama_kv_cell_ext ext;
    };
    const llama_kv_cells & old = cells();
    std::vector<bool> leaves(old.size(), false);
    for (const uint32_t cell : freed) leaves[cell] = true;
    std::vector<const Row *> row_of(old.size(), nullptr);
    for (const Row & row : rows) row_of[row.src] = &row;
    std::vector<Saved> saved;
    saved.reserve(old.get_used());
    for (uint32_t cell = 0; cell < old.size(); ++cell) {
        if (old.is_empty(cell) || leaves[cell]) continue;
        Saved entry{old.pos_get(cell), cell, old.ext_get(cell)};
        if (const Row * row = row_of[cell]) {
            entry.position += row->delta;
            entry.cell = row->dst;
            entry.ext.x += row->delta;
            entry.ext.y += row->delta;
        }
        saved.push_back(entry);
    }

    llama_kv_cells fresh;
    fresh.resize(old.size());
    for (const Saved & entry : saved) {
        fresh.pos_set(entry.cell, entry.position);
        fresh.ext_set(entry.cell, entry.ext);
        fresh.seq_add(entry.cell, 0);
    }
    mutable_cells() = std::move(fresh);
}

void CachePart::restore(const SavedRows & rows, const std::vector<PlacedCell> & places) {
    cache_.clear(true);
    original_keys_.clear();
    std::vector<uint32_t> cells;
    cells.reserve(places.size());
    for (const PlacedCell & place : places) cells.push_back(place.cell);
    rows.load(cache_, original_keys_, cells);
    for (const PlacedCell & place : places) occupy(place);
}

}  // namespace ot
