// f16 keys in this process's memory: turned and moved without a detour (cpu_rows.h).
#pragma once

#include "llama/half.h"
#include "llama/cpu_rows.h"

namespace ot {

class CpuKeys {
public:
    // nullptr: the keys are elsewhere or of another type, a row shifts whose original key has no place, rotations differ by
    // layer, or this processor converts f16 slowly. REQUIRES: the cache doesn't store keys turned by a Hadamard matrix.
    static std::unique_ptr<CpuKeys> of(llama_kv_cache & cache, OriginalKeys & original_keys, const std::vector<uint32_t> & layers,
                                        const Groups & groups);

    CpuKeys(const CpuKeys &) = delete;
    CpuKeys & operator=(const CpuKeys &) = delete;

    // REQUIRES: one of the layers it was made for, once; this object and its groups outlive the graph.
    void add_layer(ggml_context * ctx, ggml_cgraph * graph, uint32_t layer);

private:
    // What the operators of a layer work on.
    struct Layer {
        CpuKeys * self;
        char * keys;
        char * original_keys;  // nullptr when nothing shifts
    };

    CpuKeys(llama_kv_cache & cache, OriginalKeys & original_keys, const Groups & groups, size_t n_layers, size_t row);

    static void gather(ggml_tensor *, const ggml_tensor *, int thread, int n_threads, void * layer);
    static void scatter(ggml_tensor *, const ggml_tensor *, int thread, int n_threads, void * layer);
    template <typename Slot>
    void rotate(const Layer & layer, const Group & rows, Slot slot, int thread, int n_threads) const;

    llama_kv_cache & cache_;
    OriginalKeys & original_keys_;
    const Groups & groups_;
    size_t row_;  // bytes
    RotateHalf rotate_;
    Scratch moved_;              // rows that only move, between the two operators of a layer
    std::vector<Layer> layers_;  // never grows beyond what was reserved: operators point into it
};

}  // namespace ot
