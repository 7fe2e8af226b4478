// The memory decorator: stands in for the KV cache of an unmodified llama_context, so that we choose the cell of every
// token and can shift and move cached rows, also under M-RoPE.
#pragma once

#include "llama/cache_part.h"
#include "llama/rows.h"

#include <ggml.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct llama_context;

namespace ot {

class TideMemory;

// Saved rows of all of a memory's caches, and the recurrent layers' state where it has one; all of it has been checked.
struct SavedMemory {
    std::vector<SavedRows> caches;
    const uint8_t * state = nullptr;
    size_t state_bytes = 0;
};

// The session's view of one context's memory. Lives as long as the session; notices when the context dies first.
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
    uint64_t bytes_allocated() const;  // with the original keys, and the recurrent layers' states

    // The tokens of the next llama_decode go into these cells, in token order. REQUIRES: as many as tokens, all empty.
    void place_next(std::vector<uint32_t> cells);

    // Empties cells (those that are not empty).
    void remove(const std::vector<uint32_t> & cells);

    // Before a unit is decoded that may have to be taken back: what the recurrent layers know is put aside, or, without `whole`,
    // only looked at, which costs nothing. Nothing to do for models without such layers.
    void begin_unit(bool whole);
    // As it was before the unit; its cells are the caller's to remove. false: recurrent layers have seen the unit, and nothing
    // was put aside.
    bool undo_unit();

    // Runs the relocation now, then moves the cells' metadata and empties `freed`, which rows may move into.
    // false: the rows are in an unknown state.
    bool relocate(const std::vector<Row> & rows, const std::vector<uint32_t> & freed);

    // A token of sequence 0 in an empty cell; and, for benchmarks, random rows in all cells.
    void occupy(uint32_t cell, int32_t t, int32_t y, int32_t x);
    void fill_random(uint32_t seed);

    // The rows of `cells` (ascending) as bytes; those of a cache that died are none.
    void write(const std::vector<uint32_t> & cells, ByteWriter & out) const;
    // Saved rows for `n_rows` cells. Throws StateError when they don't fit this cache, which stays as it is.
    SavedMemory parse(uint32_t n_rows, ByteReader & in) const;
    // Fills an emptied cache: row i goes to cells[i] (ascending).
    void restore(const SavedMemory & saved, const std::vector<PlacedCell> & cells);

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

    bool has_recurrent_state() const;
    // What speaks against all caches, and the recurrent state, being at the same tokens; empty: nothing does.
    std::string disagreement() const;

    // For the other files of this room. REQUIRES: is_alive().
    bool is_alive() const { return memory_ != nullptr; }
    const std::vector<std::unique_ptr<CachePart>> & parts() const;
    void synchronize() const;  // waits for what llama.cpp computes

private:
    explicit CacheHandle(llama_context & context) : context_(context) {}
    const CachePart * part_with(uint32_t layer) const;

    llama_context & context_;
    std::vector<uint8_t> state_before_;  // the recurrent layers', before the unit in hand; empty: not put aside
    int32_t position_before_ = -1;
    TideMemory * memory_ = nullptr;  // owned by the context; null once that died
    friend class TideMemory;
};

}  // namespace ot
