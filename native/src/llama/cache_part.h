// One of the caches in a context's memory, with what we know of its rows. A memory with a sliding window has two, one for the
// layers that see all tokens and one for those that see a window; both hold the same tokens in the same cells.
#pragma once

#include "llama/original_keys.h"
#include "llama/relocation.h"

#include <ggml.h>

#include <cstdint>
#include <vector>

struct llama_context;
class llama_kv_cache;
class llama_kv_cells;

namespace ot {

class SavedRows;

// A cell that a token lies in, and its position.
struct PlacedCell {
    uint32_t cell;
    int32_t t, y, x;
};

class CachePart {
public:
    explicit CachePart(llama_kv_cache & cache) : cache_(cache), original_keys_(cache) {}

    llama_kv_cache & cache() const { return cache_; }
    const llama_kv_cells & cells() const;
    OriginalKeys & original_keys() { return original_keys_; }
    const OriginalKeys & original_keys() const { return original_keys_; }

    // Layers whose keys and values lie here. Those that read another layer's aren't among them.
    std::vector<uint32_t> layers() const;
    bool has_layer(uint32_t layer) const;
    ggml_tensor * keys(uint32_t layer) const;  // REQUIRES: has_layer(), as below
    std::vector<float> key_row(uint32_t layer, uint32_t cell) const;
    std::vector<float> value_row(uint32_t layer, uint32_t cell) const;

    bool is_empty(uint32_t cell) const;
    int32_t position(uint32_t cell) const;  // -1: empty

    void remove(uint32_t cell);
    void hide(uint32_t cell);               // its row and its original key stay
    void occupy(const PlacedCell & place);  // REQUIRES: is_empty()

    // Rows first, then the cells' metadata. false: the rows are in an unknown state.
    bool relocate(llama_context & context, const std::vector<Row> & rows, const std::vector<uint32_t> & freed);
    // Relocates one row on a room for originals of its own: the session's, as large as all keys, isn't made before it is needed.
    bool try_shift(llama_context & context, const Row & row) const;

    void restore(const SavedRows & rows, const std::vector<PlacedCell> & places);

private:
    llama_kv_cells & mutable_cells();
    void move_cells(const std::vector<Row> & rows, const std::vector<uint32_t> & freed);

    llama_kv_cache & cache_;
    OriginalKeys original_keys_;
    Relocator relocator_;
};

}  // namespace ot
