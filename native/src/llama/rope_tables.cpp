#include "llama/rope_tables.h"

#include "llama-context.h"
#include "llama-model.h"

#include <ggml-backend.h>

#include <cmath>
#include <unordered_map>

namespace ot {

// Interleaved M-RoPE's last pairs are nobody's where sections don't fill the half (Qwen3-VL's two of 64): llama.cpp never
// turns those, a shift does. They are the slowest, 4e-7 radians a position: 1.3e-3 at a shift by 3,000.
int shift_rope_type(const llama_model & model) {
    const llama_rope_type type = model.hparams.rope_type;
    return type == LLAMA_ROPE_TYPE_MROPE || type == LLAMA_ROPE_TYPE_IMROPE ? LLAMA_ROPE_TYPE_NEOX : type;
}

size_t RotatedPairs::partner(size_t i) const {
    const int64_t at = static_cast<int64_t>(i) - first;
    if (at < 0 || at >= count) return i;
    if (!halves) return static_cast<size_t>(first + (at ^ 1));
    return static_cast<size_t>(first + (at < count / 2 ? at + count / 2 : at - count / 2));
}

// Keys of models with a latent for keys and values, where those are stored whole, end in their rotary part.
RotatedPairs rotated_pairs(const llama_model & model, uint32_t layer) {
    const llama_hparams & hparams = model.hparams;
    if (!hparams.has_rope(layer) || hparams.rope_type == LLAMA_ROPE_TYPE_NONE) return {};
    const int64_t count = hparams.n_rot(layer);
    const int64_t first = hparams.n_lora_kv > 0 ? hparams.n_embd_head_k(layer) - count : 0;
    return {first, count, shift_rope_type(model) == LLAMA_ROPE_TYPE_NEOX};
}

uint64_t rotation_id(const llama_context & context, const std::vector<uint32_t> & layers) {
    uint64_t id = 0xcbf29ce484222325;  // FNV-1a
    const auto add = [&id](const void * bytes, size_t n) {
        for (size_t i = 0; i < n; ++i) id = (id ^ static_cast<const uint8_t *>(bytes)[i]) * 0x100000001b3;
    };
    const llama_model & model = context.get_model();
    const llama_cparams & cparams = context.get_cparams();
    for (const uint32_t layer : layers) {
        const int32_t il = static_cast<int32_t>(layer);
        const float base = model.get_rope_freq_base(cparams, il), scale = model.get_rope_freq_scale(cparams, il);
        add(&base, sizeof(base));
        add(&scale, sizeof(scale));
        add(&cparams.yarn_attn_factor, sizeof(cparams.yarn_attn_factor));
        const ggml_tensor * factors = model.get_rope_factors(cparams, il);
        if (!factors || !factors->buffer) continue;
        std::vector<uint8_t> bytes(ggml_nbytes(factors));
        ggml_backend_tensor_get(factors, bytes.data(), 0, bytes.size());
        add(bytes.data(), bytes.size());
    }
    return id;
}

SharedRotation shared_rotation(const llama_context & context, const std::vector<uint32_t> & layers) {
    const llama_model & model = context.get_model();
    const llama_hparams & hparams = model.hparams;
    const llama_cparams & cparams = context.get_cparams();
    if (cparams.yarn_ext_factor != 0.0f || shift_rope_type(model) != LLAMA_ROPE_TYPE_NEOX) return {};

    SharedRotation shared;
    for (const uint32_t layer : layers) {
        const int32_t il = static_cast<int32_t>(layer);
        const bool whole_head = rotated_pairs(model, layer).count == hparams.n_embd_head_k(layer);
        if (!whole_head || model.get_rope_factors(cparams, il)) return {};
        const SharedRotation own{hparams.n_rot(layer) / 2, hparams.n_head_kv(layer), model.get_rope_freq_base(cparams, il), model.get_rope_freq_scale(cparams, il)};
        const bool alike = own.half == shared.half && own.heads == shared.heads && own.base == shared.base && own.scale == shared.scale;
        if (shared.half != 0 && !alike) return {};
        shared = own;
    }
    return shared;
}

void RopeTables::compute(const SharedRotation & shared, const std::vector<int32_t> & deltas) {
    if (shared.half == 0 || deltas.empty()) return;
    head_ = 2 * shared.half;
    heads_ = shared.heads;
    std::vector<double> frequencies;
    for (int64_t i = 0; i < shared.half; ++i) {
        frequencies.push_back(shared.scale * std::pow(shared.base, -static_cast<double>(i) / static_cast<double>(shared.half)));
    }
    std::unordered_map<int32_t, int32_t> known;  // few differ: units that came together shift together
    for (const int32_t delta : deltas) {
        const auto [found, is_new] = known.try_emplace(delta, static_cast<int32_t>(known.size()));
        which_.values.push_back(found->second);
        if (!is_new) continue;
        const size_t first = cosines_.values.size(), half = frequencies.size();
        cosines_.values.resize(first + 2 * half);
        sines_.values.resize(first + 2 * half);
        for (size_t i = 0; i < half; ++i) {
            const auto cosine = static_cast<float>(std::cos(delta * frequencies[i])), sine = static_cast<float>(std::sin(delta * frequencies[i]));
            cosines_.values[first + i] = cosines_.values[first + half + i] = cosine;
            sines_.values[first + i] = -sine;
            sines_.values[first + half + i] = sine;
        }
    }
}

void RopeTables::declare(ggml_context * ctx) {
    if (head_ == 0) return;
    const int64_t rows = static_cast<int64_t>(which_.values.size());
    const int64_t distinct = static_cast<int64_t>(cosines_.values.size()) / head_;
    swapped_.values.resize(static_cast<size_t>(2 * heads_ * rows));
    for (size_t i = 0; i < swapped_.values.size(); ++i) swapped_.values[i] = static_cast<int32_t>(i ^ 1);
    cosines_.tensor = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, head_, distinct);
    sines_.tensor = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, head_, distinct);
    which_.tensor = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, rows);
    swapped_.tensor = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, static_cast<int64_t>(swapped_.values.size()));
    for (ggml_tensor * input : {cosines_.tensor, sines_.tensor, which_.tensor, swapped_.tensor}) ggml_set_input(input);
    cos_ = ggml_reshape_3d(ctx, ggml_get_rows(ctx, cosines_.tensor, which_.tensor), head_, 1, rows);
    sin_ = ggml_reshape_3d(ctx, ggml_get_rows(ctx, sines_.tensor, which_.tensor), head_, 1, rows);
}

void RopeTables::upload() const {
    if (!cos_) return;
    const auto set = [](const auto & input) { ggml_backend_tensor_set(input.tensor, input.values.data(), 0, ggml_nbytes(input.tensor)); };
    set(cosines_);
    set(sines_);
    set(which_);
    set(swapped_);
}

// A ggml_custom1_op_t: what apply() otherwise builds of six operators, in one pass.
void RopeTables::rotate(ggml_tensor * dst, const ggml_tensor * k, int thread, int n_threads, void * tables) {
    const auto & self = *static_cast<const RopeTables *>(tables);
    const int64_t half = self.head_ / 2;
    for (int64_t row = thread; row < k->ne[2]; row += n_threads) {
        const float * cosines = self.cosines(static_cast<size_t>(row));
        const float * sines = self.sines(static_cast<size_t>(row));
        for (int64_t head = 0; head < k->ne[1]; ++head) {
            const auto * from = reinterpret_cast<const float *>(static_cast<const char *>(k->data) + row * k->nb[2] + head * k->nb[1]);
            auto * __restrict to = reinterpret_cast<float *>(static_cast<char *>(dst->data) + row * dst->nb[2] + head * dst->nb[1]);
            for (int64_t i = 0; i < half; ++i) {
                to[i] = from[i] * cosines[i] - from[i + half] * sines[i];
                to[i + half] = from[i + half] * cosines[i] + from[i] * sines[i];
            }
        }
    }
}

ggml_tensor * RopeTables::apply(ggml_context * ctx, ggml_tensor * k) const {
    if (!cos_) return ggml_map_custom1(ctx, k, rotate, GGML_N_TASKS_MAX, const_cast<RopeTables *>(this));
    // Halves change places by a gather: ggml concatenates element by element.
    ggml_tensor * halves = ggml_reshape_2d(ctx, k, head_ / 2, swapped_.tensor->ne[0]);
    ggml_tensor * swapped = ggml_reshape_3d(ctx, ggml_get_rows(ctx, halves, swapped_.tensor), k->ne[0], k->ne[1], k->ne[2]);
    return ggml_add(ctx, ggml_mul(ctx, k, cos_), ggml_mul(ctx, swapped, sin_));
}

}  // namespace ot
