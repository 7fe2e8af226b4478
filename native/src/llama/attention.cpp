#include "llama/attention.h"

#include "llama-context.h"

#include <ggml-backend.h>

#include <cstring>

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

void AttentionProbe::start() {
    ms_ = 0;
    stage_ = Stage::Outside;
    set_callback(true);
}

void AttentionProbe::stop() {
    if (on_) set_callback(false);
}

// The scheduler has it for the graph at hand, which may be reused; the context gives it to the scheduler with the next one.
void AttentionProbe::set_callback(bool on) {
    context_.synchronize();
    on_ = on;
    auto & params = const_cast<llama_cparams &>(context_.get_cparams());
    params.cb_eval = on ? on_node : nullptr;
    params.cb_eval_user_data = on ? this : nullptr;
    ggml_backend_sched_set_eval_callback(context_.get_sched(), params.cb_eval, params.cb_eval_user_data);
}

bool AttentionProbe::on_node(ggml_tensor * node, bool ask, void * self) {
    auto & probe = *static_cast<AttentionProbe *>(self);
    if (ask) return probe.wants(*node);
    probe.computed(*node);
    return true;  // false would end the graph here
}

bool AttentionProbe::wants(const ggml_tensor & node) {
    if (stage_ == Stage::Inside) return ends_attention(node);
    if (begins_attention(node)) {
        if (stage_ == Stage::Ready) stage_ = Stage::Inside;
        return false;
    }
    if (!looks(node)) stage_ = Stage::Outside;  // the permutation that started the clock was another's
    return stage_ == Stage::Outside && node.op == GGML_OP_PERMUTE;
}

void AttentionProbe::computed(const ggml_tensor & node) {
    if (stage_ == Stage::Inside) {
        ms_ += std::chrono::duration<double, std::milli>(Clock::now() - begin_).count();
        stage_ = Stage::Outside;
    } else if (node.op == GGML_OP_PERMUTE) {
        begin_ = Clock::now();
        stage_ = Stage::Ready;
    }
}

}  // namespace ot
