// Rotations of cached keys as cosines and sines, computed once for all layers.
//
// ggml's rope computes them anew in every layer, and for a cache of few key heads that is most of its work: of a
// relocation of 1,800 rows in 4 layers it took half the time.
#pragma once

#include <ggml.h>

#include <cstdint>
#include <vector>

struct llama_context;
struct llama_model;

namespace ot {

// The rope type that a shift uses: llama.cpp's own turns M-RoPE keys as NEOX over all rotary dimensions, so that t, y and
// x move alike.
int shift_rope_type(const llama_model & model);

// Which dimensions of a layer's keys turn, and which with which, as the model's hyperparameters say.
struct RotatedPairs {
    int64_t first = 0;   // dimension of a head
    int64_t count = 0;   // dimensions that turn from there on; 0: the layer's keys have no rotation
    bool halves = false;  // i turns with i + count / 2, else with its neighbour

    size_t partner(size_t i) const;  // i itself where it doesn't turn
};

RotatedPairs rotated_pairs(const llama_model & model, uint32_t layer);

// The rotation that all layers share: halves of a head turn against each other, by frequencies of base and scale alone.
struct SharedRotation {
    int64_t half = 0;  // 0: layers differ, or the model's rope is of another kind
    int64_t heads = 0;
    double base = 0;
    double scale = 0;
};

// A number for all that says how the context rotates the keys of these layers, factors of longrope among it: they may depend
// on the context's size.
uint64_t rotation_id(const llama_context & context, const std::vector<uint32_t> & layers);

SharedRotation shared_rotation(const llama_context & context, const std::vector<uint32_t> & layers);

// The rotation of every row: keys x cos + keys with swapped halves x sin, where the first half's sines are negative.
class RopeTables {
public:
    // For rows that rotate by the given number of positions each; nothing when there is no shared rotation.
    void compute(const SharedRotation & shared, const std::vector<int32_t> & deltas);
    // Inputs of a graph for any backend; without them the rotation is one operator of ours, for rows in this process's
    // memory.
    void declare(ggml_context * ctx);
    void upload() const;

    bool ready() const { return head_ != 0; }
    int64_t head() const { return head_; }  // dimensions
    // [head / 2] of a row. REQUIRES: ready().
    const float * cosines(size_t row) const { return cosines_.values.data() + first(row); }
    const float * sines(size_t row) const { return sines_.values.data() + first(row) + head_ / 2; }  // the positive ones

    // k [head, heads, rows], contiguous f32, rotated. REQUIRES: this object outlives the graph.
    ggml_tensor * apply(ggml_context * ctx, ggml_tensor * k) const;

private:
    template <typename T>
    struct Input {
        std::vector<T> values;
        ggml_tensor * tensor = nullptr;
    };

    static void rotate(ggml_tensor * dst, const ggml_tensor * k, int thread, int n_threads, void * tables);
    size_t first(size_t row) const { return static_cast<size_t>(which_.values[row]) * static_cast<size_t>(head_); }

    int64_t head_ = 0, heads_ = 0;
    Input<float> cosines_, sines_;  // [head, distinct rotations]
    Input<int32_t> which_;          // [rows]: each row's rotation
    Input<int32_t> swapped_;        // [2 x heads x rows]: for each half of a head the other one
    ggml_tensor * cos_ = nullptr;   // [head, 1, rows]
    ggml_tensor * sin_ = nullptr;
};

}  // namespace ot
