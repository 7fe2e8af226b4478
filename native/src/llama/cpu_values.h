// Values in this process's memory, moved without a detour (cpu_rows.h): whole rows of any type, or, where they are
// transposed (flash attention off), channel by channel.
#pragma once

#include "llama/cpu_rows.h"

namespace ot {

class CpuValues {
public:
    // nullptr: no value moves, or they lie elsewhere.
    static std::unique_ptr<CpuValues> of(llama_kv_cache & cache, const std::vector<uint32_t> & layers, const Groups & groups);

    CpuValues(const CpuValues &) = delete;
    CpuValues & operator=(const CpuValues &) = delete;

    // REQUIRES: the layers it was made for, in their order; this object and its groups outlive the graph.
    void add_layer(ggml_context * ctx, ggml_cgraph * graph);

private:
    // What the operators of a layer work on. In transposed values a row is a channel: all cells' values of it.
    struct Layer {
        CpuValues * self;
        ggml_tensor * tensor;
        size_t row;       // bytes
        size_t channels;  // 0: not transposed
    };
    // Neighbouring rows that stay neighbours.
    struct Run {
        size_t src, dst, length;
    };

    explicit CpuValues(const Group & rows);

    static void gather(ggml_tensor *, const ggml_tensor *, int thread, int n_threads, void * layer);
    static void scatter(ggml_tensor *, const ggml_tensor *, int thread, int n_threads, void * layer);
    static void move_channels(ggml_tensor *, const ggml_tensor *, int thread, int n_threads, void * layer);
    template <typename Element>
    void move_channels(const Layer & layer, int thread, int n_threads) const;

    const Group & rows_;
    std::vector<Run> runs_;
    std::vector<Layer> layers_;  // complete before operators point into it
    size_t next_ = 0;
    Scratch scratch_;  // the rows that move; of channels, every thread's
};

}  // namespace ot
