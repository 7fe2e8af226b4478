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

// The rotation that all layers share: halves of a head turn against each other, by frequencies of base and scale alone.
struct SharedRotation {
    int64_t half = 0;  // 0: layers differ, or the model's rope is of another kind
    double base = 0;
    double scale = 0;
};

SharedRotation shared_rotation(const llama_context & context, const std::vector<uint32_t> & layers);

// Cosines and sines of every row's rotation, as graph inputs [half, 1, rows].
class Turns {
public:
    // For rows that rotate by so many positions each; nothing when there is no shared rotation.
    void compute(const SharedRotation & shared, const std::vector<int32_t> & deltas);
    void declare(ggml_context * ctx);
    void upload() const;

    bool ready() const { return t_cos_ != nullptr; }
    ggml_tensor * cos() const { return t_cos_; }
    ggml_tensor * sin() const { return t_sin_; }

private:
    int64_t half_ = 0;
    int64_t rows_ = 0;
    std::vector<float> cos_, sin_;
    ggml_tensor * t_cos_ = nullptr;
    ggml_tensor * t_sin_ = nullptr;
};

}  // namespace ot
