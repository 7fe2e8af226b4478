#include "llama/turns.h"

#include "llama-context.h"
#include "llama-model.h"

#include <ggml-backend.h>

#include <cmath>
#include <unordered_map>

namespace ot {

int shift_rope_type(const llama_model & model) {
    const llama_rope_type type = model.hparams.rope_type;
    return type == LLAMA_ROPE_TYPE_MROPE || type == LLAMA_ROPE_TYPE_IMROPE ? LLAMA_ROPE_TYPE_NEOX : type;
}

SharedRotation shared_rotation(const llama_context & context, const std::vector<uint32_t> & layers) {
    const llama_model & model = context.get_model();
    const llama_hparams & hparams = model.hparams;
    const llama_cparams & cparams = context.get_cparams();
    const bool extended = cparams.yarn_ext_factor != 0.0f || cparams.yarn_attn_factor != 1.0f;
    if (extended || shift_rope_type(model) != LLAMA_ROPE_TYPE_NEOX) return {};

    SharedRotation shared;
    for (const uint32_t layer : layers) {
        const int32_t il = static_cast<int32_t>(layer);
        const bool whole_head = hparams.has_rope(layer) && hparams.n_rot(layer) == hparams.n_embd_head_k(layer);
        if (!whole_head || model.get_rope_factors(cparams, il)) return {};
        const SharedRotation own{hparams.n_rot(layer) / 2, model.get_rope_freq_base(cparams, il), model.get_rope_freq_scale(cparams, il)};
        if (shared.half != 0 && (own.half != shared.half || own.base != shared.base || own.scale != shared.scale)) return {};
        shared = own;
    }
    return shared;
}

void Turns::compute(const SharedRotation & shared, const std::vector<int32_t> & deltas) {
    if (shared.half == 0 || deltas.empty()) return;
    half_ = shared.half;
    rows_ = static_cast<int64_t>(deltas.size());
    cos_.reserve(deltas.size() * static_cast<size_t>(half_));
    sin_.reserve(cos_.capacity());
    std::unordered_map<int32_t, size_t> known;  // few differ: units that came together shift together
    for (const int32_t delta : deltas) {
        const auto [found, is_new] = known.try_emplace(delta, cos_.size());
        for (int64_t i = 0; i < half_; ++i) {
            if (is_new) {
                const double angle = delta * shared.scale * std::pow(shared.base, -static_cast<double>(i) / static_cast<double>(half_));
                cos_.push_back(static_cast<float>(std::cos(angle)));
                sin_.push_back(static_cast<float>(std::sin(angle)));
            } else {
                cos_.push_back(cos_[found->second + static_cast<size_t>(i)]);
                sin_.push_back(sin_[found->second + static_cast<size_t>(i)]);
            }
        }
    }
}

void Turns::declare(ggml_context * ctx) {
    if (cos_.empty()) return;
    t_cos_ = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, half_, 1, rows_);
    t_sin_ = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, half_, 1, rows_);
    ggml_set_input(t_cos_);
    ggml_set_input(t_sin_);
}

void Turns::upload() const {
    if (!t_cos_) return;
    ggml_backend_tensor_set(t_cos_, cos_.data(), 0, cos_.size() * sizeof(float));
    ggml_backend_tensor_set(t_sin_, sin_.data(), 0, sin_.size() * sizeof(float));
}

}  // namespace ot
