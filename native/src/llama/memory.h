// The memory decorator: stands in for the KV cache of an unmodified llama_context, so that we choose the cell of every
// token and can shift and move cached rows, also under M-RoPE.
#pragma once

#include "llama/relocation.h"
#include "llama/rows.h"

#include <ggml.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct llama_context;
class llama_kv_cache;

namespace ot {

class TideMemory;
class OriginalKeys;

// A cell that a token lies in, and its position.
struct PlacedCell {
    uint32_t cell;
    int32_t t, y, x;
};

// The session's view of one context's cache. Lives as long as the session; notices when the context dies first.
class CacheHandle {
public:
    // Takes the context's memory over. On refusal returns null and says why in `reason`.
    static std::unique_ptr<CacheHandle> attach(llama_context & context, std::string & reason);
    ~CacheHandle();

    uint32_t n_cells() const;
    bool is_empty(uint32_t cell) const;
    int32_t position(uint32_t cell) const;
    bool transposed_values() const;
    uint64_t bytes_per_cell() const;
    uint64_t bytes_allocated() const;  // with the original keys

    // The tokens of the next llama_decode go into these cells, in token order. REQUIRES: as many as tokens, all empty.
    void place_next(std::vector<uint32_t> cells);

    // Empties cells (those that are not empty).
    void remove(const std::vector<uint32_t> & cells);

    // Runs the relocation now, then moves the cells' metadata and empties `freed`, which rows may move into.
    // false: the rows are in an unknown state.
    bool relocate(const std::vector<Row> & rows, const std::vector<uint32_t> & freed);

    // A token of sequence 0 in an empty cell; and, for benchmarks, random rows in all cells.
    void occupy(uint32_t cell, int32_t t, int32_t y, int32_t x);
    void fill_random(uint32_t seed);

    // The rows of `cells` (ascending) as bytes; those of a cache that died are none.
    void write(const std::vector<uint32_t> & cells, ByteWriter & out) const;
    // Saved rows for `n_rows` cells. Throws StateError when they don't fit this cache, which stays as it is.
    SavedRows parse(uint32_t n_rows, ByteReader & in) const;
    // Fills an emptied cache: row i of `rows` goes to cells[i] (ascending).
    void restore(const SavedRows & rows, const std::vector<PlacedCell> & cells);

    // Relocates one row as relocate() would, the cells and what is known of original keys apart. false: it failed.
    bool try_shift(const Row & row);

    // One layer's key row as floats; empty when there is no such layer or cell.
    std::vector<float> key_row(uint32_t layer, uint32_t cell) const;
    size_t key_width(uint32_t layer) const;
    // The same of its values. A quantised cache may keep both turned by a Hadamard matrix.
    std::vector<float> value_row(uint32_t layer, uint32_t cell) const;
    size_t value_width(uint32_t layer) const;
    std::vector<uint32_t> layers() const;  // that have keys of their own
    ggml_type key_type(uint32_t layer) const;  // REQUIRES: a layer of those

    // Hides cells from attention: their rows and original keys stay, and are relocated with the others, but no token lies in
    // them for llama.cpp until occupy() says where.
    void hide(const std::vector<uint32_t> & cells);

    // For the other files of this room. REQUIRES: is_alive().
    bool is_alive() const { return memory_ != nullptr; }
    llama_kv_cache & inner() const;
    const OriginalKeys & original_keys() const;
    void synchronize() const;  // waits for what llama.cpp computes

private:
    explicit CacheHandle(llama_context & context) : context_(context) {}

    llama_context & context_;
    TideMemory * memory_ = nullptr;  // owned by the context; null once that died
    friend class TideMemory;
};

}  // namespace ot
