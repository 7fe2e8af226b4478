// Rows of a cache that lie in this process's memory, moved without a detour: as bytes, two operators a layer.
//
// The graph that runs anywhere (relocation.cpp) turns each row into f32 and back, in nodes of their own: rows go through
// memory six times, and threads wait for each other after every node.
#pragma once

#include "llama/groups.h"

#include <cstring>
#include <memory>

struct ggml_cgraph;

namespace ot {

// A thread's share of n things: neighbours stay together.
struct Share {
    size_t begin, end;

    Share(size_t n, int thread, int n_threads)
        : begin(n * static_cast<size_t>(thread) / static_cast<size_t>(n_threads)),
          end(n * static_cast<size_t>(thread + 1) / static_cast<size_t>(n_threads)) {}
};

template <typename T>
auto ids(const Ids<T> & list) {
    return [&list](size_t i) { return static_cast<size_t>(list.values[i]); };
}

inline size_t identity(size_t i) { return i; }

// Rows `from(i)` of one table to rows `to(i)` of another, `row` bytes each.
template <typename From, typename To>
void copy_rows(const char * source, From from, char * target, To to, size_t row, Share share) {
    for (size_t i = share.begin; i < share.end; ++i) std::memcpy(target + to(i) * row, source + from(i) * row, row);
}

// Uninitialised, and made before any thread needs it.
using Scratch = std::unique_ptr<char[]>;

}  // namespace ot
