// Cached rows as bytes: the keys and values of a saved session, and its original keys (original_keys.h).
//
// Written row by row in ascending order of cells, whatever the backend and however it stores values, so that a session
// may go on elsewhere. llama.cpp's own state format is not used: it says nothing of cells, reading it back moves every
// row, and it trusts what it reads.
#pragma once

#include "bytes.h"

#include <cstddef>
#include <cstdint>
#include <vector>

struct llama_context;
class llama_kv_cache;

namespace ot {

class OriginalKeys;

// What stands behind a cache's rows, in a memory of more than one cache.
struct Following {
    bool rows = false;   // another cache's
    bool state = false;  // the recurrent layers'
};

void write_rows(const llama_context & context, llama_kv_cache & cache, const OriginalKeys & original_keys, const std::vector<uint32_t> & cells,
                const Following & following, ByteWriter & out);

// Saved rows that fit a cache: everything about them has been checked, and reading them can't fail.
class SavedRows {
public:
    // Reads what write_rows wrote for `n_rows` cells; the bytes must outlive it. Throws StateError when they are of
    // another shape than the cache's, were rotated in another way than the context does, or something else follows them.
    static SavedRows parse(const llama_context & context, llama_kv_cache & cache, uint32_t n_rows, const Following & following, ByteReader & in);

    bool has_originals() const { return !untouched_.empty(); }
    // Of the same tokens, shifted alike.
    bool has_same_originals(const SavedRows & other) const { return untouched_ == other.untouched_; }

    // Fills the rows of `cells` (ascending, as many as were parsed). REQUIRES: the cache and `original_keys` are clear.
    void load(llama_kv_cache & cache, OriginalKeys & original_keys, const std::vector<uint32_t> & cells) const;

private:
    struct Layer {
        uint32_t id;
        size_t key_bytes, value_bytes;  // a row's
        const uint8_t * keys;
        const uint8_t * values;
        const uint8_t * untouched;
    };
    struct Untouched {
        uint32_t row;  // index into the cells
        int32_t shifted_by;
        bool operator==(const Untouched & other) const { return row == other.row && shifted_by == other.shifted_by; }
    };

    std::vector<Layer> layers_;
    std::vector<Untouched> untouched_;
};

}  // namespace ot
