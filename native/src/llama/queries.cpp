#include "llama/queries.h"

#include "llama-context.h"
#include "llama-model.h"

#include <ggml-backend.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>

namespace ot {
namespace {

// What llama.cpp's models call a layer's rotated queries, before `-<layer>`; LFM2 names what it rotates alone.
constexpr const char * kNames[] = {"Qcur", "Qcur_pos", "Qcur_rope", "Qcur-post-rope"};
constexpr const char * kNamesBefore[] = {"model.layers.{}.self_attn.q_layernorm"};

template <size_t N>
int layer_by_name(const ggml_tensor & node, const char * const (&names)[N]) {
    const char * dash = std::strrchr(node.name, '-');
    if (!dash) return -1;
    const std::string_view name{node.name, static_cast<size_t>(dash - node.name)};
    return std::find(std::begin(names), std::end(names), name) != std::end(names) ? std::atoi(dash + 1) : -1;
}

int layer_of(const ggml_tensor & node) {
    if (node.op != GGML_OP_ROPE || node.type != GGML_TYPE_F32) return -1;
    const int layer = layer_by_name(node, kNames);
    return layer >= 0 || !node.src[0] ? layer : layer_by_name(*node.src[0], kNamesBefore);
}

}  // namespace

float attention_scale(const llama_context & context, uint32_t head) {
    const float own = context.get_model().hparams.f_attention_scale;
    return own > 0 ? own : 1.0f / std::sqrt(static_cast<float>(head));
}

QueryProbe::QueryProbe(llama_context & context, const std::vector<uint32_t> & layers) : context_(context), layers_(layers) {
    for (const uint32_t layer : layers_) last_ = std::max(last_, layer);
    before_ = context_.get_cparams().cb_eval;
    before_data_ = context_.get_cparams().cb_eval_user_data;
    set_callback(on_node, this);
}

QueryProbe::~QueryProbe() { set_callback(before_, before_data_); }

// The scheduler has the callback for the graph at hand, which may be reused; the context hands it on with the next one.
void QueryProbe::set_callback(bool (*callback)(ggml_tensor *, bool, void *), void * data) {
    context_.synchronize();
    auto & params = const_cast<llama_cparams &>(context_.get_cparams());
    params.cb_eval = callback;
    params.cb_eval_user_data = data;
    ggml_backend_sched_set_eval_callback(context_.get_sched(), callback, data);
}

bool QueryProbe::wants(const ggml_tensor & node) const {
    const int layer = layer_of(node);
    return layer >= 0 && std::find(layers_.begin(), layers_.end(), static_cast<uint32_t>(layer)) != layers_.end();
}

bool QueryProbe::on_node(ggml_tensor * node, bool ask, void * self) {
    auto & probe = *static_cast<QueryProbe *>(self);
    if (ask) return probe.wants(*node);
    probe.read(*node);
    return static_cast<uint32_t>(layer_of(*node)) != probe.last_;  // false ends the graph
}

void QueryProbe::read(const ggml_tensor & node) {
    std::vector<float> & queries = queries_[static_cast<uint32_t>(layer_of(node))];
    const auto row = static_cast<size_t>(node.ne[0] * node.ne[1]);  // of a token
    for (int64_t token = 0; token < node.ne[2]; ++token) {
        queries.resize(queries.size() + row);
        float * to = queries.data() + queries.size() - row;
        for (int64_t head = 0; head < node.ne[1]; ++head) {
            const size_t offset = static_cast<size_t>(token) * node.nb[2] + static_cast<size_t>(head) * node.nb[1];
            ggml_backend_tensor_get(&node, to + head * node.ne[0], offset, static_cast<size_t>(node.ne[0]) * sizeof(float));
        }
    }
}

std::vector<float> QueryProbe::take(const std::vector<RotaryPlace> & places) const {
    std::vector<float> all;
    for (const uint32_t layer : layers_) {
        const Rotation rotation{context_, layer};
        const size_t row = size_t{n_heads(layer)} * rotation.head();
        const auto found = queries_.find(layer);
        if (found == queries_.end() || found->second.size() != places.size() * row) return {};
        std::vector<float> queries = found->second;
        for (size_t token = 0; token < places.size(); ++token) rotation.undo(queries.data() + token * row, n_heads(layer), places[token]);
        all.insert(all.end(), queries.begin(), queries.end());
    }
    return all;
}

uint32_t QueryProbe::n_heads(uint32_t layer) const { return context_.get_model().hparams.n_head(layer); }

}  // namespace ot
