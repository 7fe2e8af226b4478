// What a relocation does to its rows, as lists of rows that are treated alike.
#pragma once

#include "llama/relocation.h"
#include "llama/rope_tables.h"

#include <ggml-backend.h>

#include <algorithm>
#include <array>

namespace ot {

// Ids as a graph input.
template <typename T>
struct Ids {
    std::vector<T> values;
    ggml_tensor * tensor = nullptr;

    void declare(ggml_context * ctx) {
        if (values.empty()) return;
        tensor = ggml_new_tensor_1d(ctx, sizeof(T) == 8 ? GGML_TYPE_I64 : GGML_TYPE_I32, static_cast<int64_t>(values.size()));
        ggml_set_input(tensor);
    }

    void upload() const {
        if (tensor && tensor->buffer) ggml_backend_tensor_set(tensor, values.data(), 0, values.size() * sizeof(T));
    }
};

// Rows that are treated alike. Which ids a group uses depends on what is done with it.
struct Group {
    Ids<int32_t> src;    // cell, or slot of an original key
    Ids<int64_t> dst;    // cell
    Ids<int32_t> delta;  // positions to rotate by
    Ids<int64_t> slot;   // where the original key is put aside
    RopeTables rope;          // what `delta` means, where one rotation fits all layers

    bool empty() const { return src.values.empty(); }
    size_t count() const { return src.values.size(); }

    // Cells from the first to behind the last that is read or written.
    int64_t span() const {
        const int64_t last_src = *std::max_element(src.values.begin(), src.values.end());
        const int64_t last_dst = *std::max_element(dst.values.begin(), dst.values.end());
        return 1 + std::max(last_src, last_dst);
    }

    // in_memory: rows lie in this process's memory.
    void declare(ggml_context * ctx, bool in_memory) {
        src.declare(ctx);
        dst.declare(ctx);
        delta.declare(ctx);
        slot.declare(ctx);
        if (!in_memory) rope.declare(ctx);
    }

    void upload() const {
        src.upload();
        dst.upload();
        delta.upload();
        slot.upload();
        rope.upload();
    }
};

struct Groups {
    Group moved;   // keys that only move
    Group first;   // keys that shift for the first time: from the cache, and put aside
    Group again;   // keys that have shifted before: from what was put aside
    Group back;    // keys that end where they were put aside: those, as they are
    Group values;  // values that move

    bool shifts() const { return !first.empty() || !again.empty(); }
    bool needs_originals() const { return shifts() || !back.empty(); }
    bool empty() const { return moved.empty() && back.empty() && !shifts(); }
    std::array<Group *, 5> all() { return {&moved, &first, &again, &back, &values}; }
};

// `keep`: first shifts put the original key aside, which claims slots of `original_keys`.
Groups group(const std::vector<Row> & rows, OriginalKeys & original_keys, bool keep);

}  // namespace ot
