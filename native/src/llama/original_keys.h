// The keys as they were before their first shift.
//
// A shift that rotates the stored key rounds it once more each time, and an endless session shifts what it keeps again and
// again: after four rotations a f16 key is two steps off, a q8_0 key is worn out. So the first shift of a row puts its
// original key aside, and every later one rotates that by the sum of all shifts: one rounding, however long the session.
// The price is the keys (not the values) of shifted rows once more: at most half of the cache.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

class llama_kv_cache;
struct ggml_tensor;

namespace ot {

class OriginalKeys {
public:
    explicit OriginalKeys(llama_kv_cache & cache);
    // With room for so many of the cells' keys.
    OriginalKeys(llama_kv_cache & cache, uint32_t n_slots);
    ~OriginalKeys();

    // Makes the tensors if they aren't there yet; false when memory doesn't suffice (and from then on).
    bool allocate();
    // As if memory didn't suffice: where another cache of the same tokens has none for its own. REQUIRES: no cell has a slot.
    void give_up();

    // [row width, n_slots] of the layer's key type. REQUIRES: allocate() succeeded.
    ggml_tensor * tensor(uint32_t layer) const;
    uint64_t bytes() const;

    bool has(uint32_t cell) const { return entries_[cell].slot >= 0; }
    int32_t slot(uint32_t cell) const { return entries_[cell].slot; }
    int32_t shifted_by(uint32_t cell) const { return entries_[cell].shifted_by; }

    // A slot for a cell that has none. REQUIRES: one is free; without a number of slots there are as many as cells.
    int32_t claim(uint32_t cell, int32_t shifted_by = 0);
    void release(uint32_t cell);
    void clear();

    // Bookkeeping of a relocation: take the entry of each source, then put each at its destination.
    struct Entry {
        int32_t slot = -1;
        int32_t shifted_by = 0;
    };
    Entry take(uint32_t cell);
    void put(uint32_t cell, Entry entry) { entries_[cell] = entry; }

private:
    struct Storage;

    llama_kv_cache & cache_;
    std::vector<Entry> entries_;  // by cell
    uint32_t n_slots_;
    std::vector<int32_t> free_slots_;
    std::unique_ptr<Storage> storage_;
    bool refused_ = false;
};

}  // namespace ot
