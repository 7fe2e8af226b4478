#include "llama/rotation.h"

#include "llama-context.h"
#include "llama-model.h"

#include <ggml-backend.h>

#include <cmath>

namespace ot {
namespace {

// ggml's order of the sections of M-RoPE: one after the other, or, interleaved, in turns of three.
uint8_t axis_of(uint32_t pair, const std::array<int, 4> & sections, bool interleaved) {
    const int total = sections[0] + sections[1] + sections[2] + sections[3];
    const int sector = total > 0 ? static_cast<int>(pair) % total : 0;
    if (interleaved) {
        if (sector % 3 == 1 && sector < 3 * sections[1]) return 1;
        if (sector % 3 == 2 && sector < 3 * sections[2]) return 2;
        return sector % 3 == 0 && sector < 3 * sections[0] ? 0 : 3;
    }
    if (sector < sections[0]) return 0;
    if (sector < sections[0] + sections[1]) return 1;
    return sector < sections[0] + sections[1] + sections[2] ? 2 : 3;
}

}  // namespace

bool Rotation::is_known(const llama_context & context, uint32_t layer) {
    const llama_hparams & hparams = context.get_model().hparams;
    switch (hparams.rope_type) {
        case LLAMA_ROPE_TYPE_NORM:
        case LLAMA_ROPE_TYPE_NEOX:
        case LLAMA_ROPE_TYPE_MROPE:
        case LLAMA_ROPE_TYPE_IMROPE: return layer < hparams.n_layer() && hparams.has_rope(layer) && hparams.n_rot(layer) <= hparams.n_embd_head_k(layer);
        default: return false;
    }
}

Rotation::Rotation(const llama_context & context, uint32_t layer) {
    const llama_model & model = context.get_model();
    const llama_hparams & hparams = model.hparams;
    const llama_cparams & cparams = context.get_cparams();
    const auto il = static_cast<int32_t>(layer);
    const uint32_t pairs = hparams.n_rot(layer) / 2;
    head_ = hparams.n_embd_head_k(layer);
    adjacent_ = hparams.rope_type == LLAMA_ROPE_TYPE_NORM;
    std::vector<float> factors(pairs, 1.0f);
    if (const ggml_tensor * of_model = model.get_rope_factors(cparams, il)) {
        ggml_backend_tensor_get(of_model, factors.data(), 0, std::min<size_t>(ggml_nbytes(of_model), pairs * sizeof(float)));
    }
    const double base = model.get_rope_freq_base(cparams, il), scale = model.get_rope_freq_scale(cparams, il);
    const bool is_interleaved = hparams.rope_type == LLAMA_ROPE_TYPE_IMROPE;
    const bool has_sections = is_interleaved || hparams.rope_type == LLAMA_ROPE_TYPE_MROPE;
    for (uint32_t pair = 0; pair < pairs; ++pair) {
        frequencies_.push_back(scale * std::pow(base, -static_cast<double>(pair) / pairs) / static_cast<double>(factors[pair]));
        axes_.push_back(has_sections ? axis_of(pair, hparams.rope_sections, is_interleaved) : 0);
    }
}

void Rotation::undo(float * heads, uint32_t n_heads, const RotaryPlace & place) const {
    const double along[4] = {static_cast<double>(place.t), static_cast<double>(place.y), static_cast<double>(place.x), 0.0};
    const size_t pairs = frequencies_.size();
    for (size_t pair = 0; pair < pairs; ++pair) {
        const double angle = along[axes_[pair]] * frequencies_[pair];
        const auto cosine = static_cast<float>(std::cos(angle)), sine = static_cast<float>(std::sin(angle));
        const size_t one = adjacent_ ? 2 * pair : pair, other = adjacent_ ? one + 1 : pair + pairs;
        for (uint32_t head = 0; head < n_heads; ++head) {
            float & a = heads[head * head_ + one];
            float & b = heads[head * head_ + other];
            const float turned = a * cosine + b * sine;
            b = b * cosine - a * sine;
            a = turned;
        }
    }
}

void turn_hadamard(float * values, uint32_t n, uint32_t block) {
    const float norm = 1.0f / std::sqrt(static_cast<float>(block));
    for (uint32_t begin = 0; begin + block <= n; begin += block) {
        float * at = values + begin;
        for (uint32_t half = 1; half < block; half *= 2) {
            for (uint32_t i = 0; i < block; i += 2 * half) {
                for (uint32_t j = i; j < i + half; ++j) {
                    const float a = at[j], b = at[j + half];
                    at[j] = a + b;
                    at[j + half] = a - b;
                }
            }
        }
        for (uint32_t i = 0; i < block; ++i) at[i] *= norm;
    }
}

}  // namespace ot
