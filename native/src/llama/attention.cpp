#include "llama/attention.h"

#include "llama-context.h"

#include <ggml-backend.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace ot {
namespace {

using Clock = std::chrono::steady_clock;

// llama.cpp calls a layer's nodes `<name>-<layer>`.
bool is_called(const ggml_tensor & node, const char * name) {
    const size_t length = std::strlen(name);
    return std::strncmp(node.name, name, length) == 0 && node.name[length] == '-';
}

bool begins_attention(const ggml_tensor & node) { return node.op == GGML_OP_FLASH_ATTN_EXT || is_called(node, "kq"); }
bool ends_attention(const ggml_tensor & node) { return is_called(node, "kqv_out"); }
bool is_softmax(const ggml_tensor & node) { return is_called(node, "kq_soft_max"); }

// What may stand between the first look at keys or queries and the product: other looks, and copies to another type.
bool looks(const ggml_tensor & node) {
    switch (node.op) {
        case GGML_OP_VIEW:
        case GGML_OP_PERMUTE:
        case GGML_OP_RESHAPE:
        case GGML_OP_TRANSPOSE:
        case GGML_OP_CPY: return true;
        default: return false;
    }
}

}  // namespace

bool uses_flash_attention(const llama_context & context) { return context.get_cparams().flash_attn; }

// The scheduler has the callback for the graph at hand, which may be reused; the context hands it on with the next one.
void AttentionProbe::watch(bool time, bool sums) {
    const bool was_on = time_ || sums_wanted_;
    const bool on = time || sums;
    time_ = time;
    sums_wanted_ = sums;
    stage_ = Stage::Outside;
    if (on == was_on) return;
    context_.synchronize();
    auto & params = const_cast<llama_cparams &>(context_.get_cparams());
    params.cb_eval = on ? on_node : nullptr;
    params.cb_eval_user_data = on ? this : nullptr;
    ggml_backend_sched_set_eval_callback(context_.get_sched(), params.cb_eval, params.cb_eval_user_data);
}

double AttentionProbe::take_ms() { return std::exchange(ms_, 0); }
std::vector<double> AttentionProbe::take_sums() { return std::exchange(sums_, {}); }

bool AttentionProbe::on_node(ggml_tensor * node, bool ask, void * self) {
    auto & probe = *static_cast<AttentionProbe *>(self);
    if (ask) return probe.wants(*node);
    probe.computed(*node);
    return true;  // false would end the graph here
}

bool AttentionProbe::wants(const ggml_tensor & node) {
    if (sums_wanted_ && is_softmax(node)) return true;
    if (!time_) return false;
    if (stage_ == Stage::Inside) return ends_attention(node);
    if (begins_attention(node)) {
        if (stage_ == Stage::Ready) stage_ = Stage::Inside;
        return false;
    }
    if (!looks(node)) stage_ = Stage::Outside;  // the permutation that started the clock was another's
    return stage_ == Stage::Outside && node.op == GGML_OP_PERMUTE;
}

void AttentionProbe::computed(const ggml_tensor & node) {
    if (is_softmax(node)) {
        add_sums(node);
    } else if (stage_ == Stage::Inside) {
        ms_ += std::chrono::duration<double, std::milli>(Clock::now() - begin_).count();
        stage_ = Stage::Outside;
    } else if (node.op == GGML_OP_PERMUTE) {
        begin_ = Clock::now();
        stage_ = Stage::Ready;
    }
}

// A row a query and head, as long as the span.
void AttentionProbe::add_sums(const ggml_tensor & node) {
    const auto width = static_cast<size_t>(node.ne[0]);
    const auto rows = static_cast<size_t>(ggml_nrows(&node));
    const auto * row = static_cast<const float *>(node.data);
    if (!ggml_backend_buffer_is_host(node.buffer)) {
        copied_.resize(width * rows);
        ggml_backend_tensor_get(&node, copied_.data(), 0, copied_.size() * sizeof(float));
        row = copied_.data();
    }
    // A layer's are added as floats, which is quick, and exact enough for some thousand numbers up to 1.
    std::vector<float> sums(width, 0.0f);
    for (size_t i = 0; i < rows; ++i, row += width) {
        for (size_t cell = 0; cell < width; ++cell) sums[cell] += row[cell];
    }
    sums_.resize(std::max(sums_.size(), width), 0.0);
    for (size_t cell = 0; cell < width; ++cell) sums_[cell] += static_cast<double>(sums[cell]);
}

}  // namespace ot
