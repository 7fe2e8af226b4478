#include "llama/relocation.h"

#include "llama/access.h"
#include "llama-model.h"

#include <ggml-backend.h>
#include <ggml-cpp.h>

#include <memory>

namespace ot {
namespace {

// The ids of a group of rows, as graph inputs.
struct Group {
    std::vector<int32_t> src, delta;
    std::vector<int64_t> dst;
    ggml_tensor * t_src = nullptr;
    ggml_tensor * t_dst = nullptr;
    ggml_tensor * t_delta = nullptr;

    void add(const Row & row) {
        src.push_back(static_cast<int32_t>(row.src));
        dst.push_back(row.dst);
        delta.push_back(row.delta);
    }

    bool empty() const { return src.empty(); }
    int64_t size() const { return static_cast<int64_t>(src.size()); }

    void declare(ggml_context * ctx, bool shifts) {
        if (empty()) return;
        t_src = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, size());
        t_dst = ggml_new_tensor_1d(ctx, GGML_TYPE_I64, size());
        ggml_set_input(t_src);
        ggml_set_input(t_dst);
        if (shifts) {
            t_delta = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, size());
            ggml_set_input(t_delta);
        }
    }

    void upload() const {
        if (empty()) return;
        ggml_backend_tensor_set(t_src, src.data(), 0, src.size() * sizeof(int32_t));
        ggml_backend_tensor_set(t_dst, dst.data(), 0, dst.size() * sizeof(int64_t));
        if (t_delta) ggml_backend_tensor_set(t_delta, delta.data(), 0, delta.size() * sizeof(int32_t));
    }
};

// The whole tensor behind the cache's view of a layer's values.
ggml_tensor * value_storage(llama_kv_cache & cache, uint32_t layer) {
    const ggml_init_params params{ggml_tensor_overhead() * 2, nullptr, true};
    ggml_context_ptr scratch{ggml_init(params)};
    llama_kv_cache::slot_info slot;
    slot.resize(1);
    slot.s0 = slot.s1 = 0;
    slot.strm[0] = 0;
    const ggml_tensor * view = cache.get_v(scratch.get(), static_cast<int32_t>(layer), 1, slot);
    return view->view_src;
}

// llama.cpp's own shift turns M-RoPE keys as NEOX over all rotary dimensions: t, y and x move alike.
int shift_rope_type(const llama_hparams & hparams) {
    const bool mrope = hparams.rope_type == LLAMA_ROPE_TYPE_MROPE || hparams.rope_type == LLAMA_ROPE_TYPE_IMROPE;
    return mrope ? LLAMA_ROPE_TYPE_NEOX : hparams.rope_type;
}

class GraphBuilder {
public:
    GraphBuilder(ggml_context * ctx, ggml_cgraph * graph, llama_context & context, llama_kv_cache & cache)
        : ctx_(ctx), graph_(graph), context_(context), cache_(cache), transposed_(access::is_v_transposed(cache)) {}

    void add_layer(uint32_t layer, const Group & moved, const Group & shifted, const Group & values, ggml_tensor * hadamard) {
        ggml_tensor * keys = flat(cache_.get_k_storage(static_cast<int32_t>(layer)));
        // Every gather of a tensor stands before its first scatter: destinations may be sources of other rows.
        ggml_tensor * moved_keys = moved.empty() ? nullptr : expand(ggml_get_rows(ctx_, keys, moved.t_src));
        ggml_tensor * shifted_keys = shifted.empty() ? nullptr : expand(rotated(layer, keys, shifted, hadamard));
        if (moved_keys) expand(ggml_set_rows(ctx_, keys, moved_keys, moved.t_dst));
        if (shifted_keys) expand(ggml_set_rows(ctx_, keys, shifted_keys, shifted.t_dst));
        if (!values.empty()) add_values(value_storage(cache_, layer), values);
    }

private:
    ggml_tensor * expand(ggml_tensor * tensor) {
        ggml_build_forward_expand(graph_, tensor);
        return tensor;
    }

    ggml_tensor * flat(ggml_tensor * tensor) { return ggml_view_2d(ctx_, tensor, tensor->ne[0], tensor->ne[1], tensor->nb[1], 0); }

    ggml_tensor * rotated(uint32_t layer, ggml_tensor * keys, const Group & rows, ggml_tensor * hadamard) {
        const int32_t il = static_cast<int32_t>(layer);
        const llama_model & model = context_.get_model();
        const llama_hparams & hparams = model.hparams;
        const llama_cparams & cparams = context_.get_cparams();
        ggml_tensor * gathered = ggml_get_rows(ctx_, keys, rows.t_src);  // f32
        if (!hparams.has_rope(layer) || hparams.rope_type == LLAMA_ROPE_TYPE_NONE) return gathered;

        ggml_tensor * k = ggml_reshape_3d(ctx_, gathered, hparams.n_embd_head_k(layer), hparams.n_head_kv(layer), rows.size());
        if (hadamard) k = llama_mul_mat_hadamard(ctx_, k, hadamard);  // its own inverse
        k = ggml_rope_ext(ctx_, k, rows.t_delta, model.get_rope_factors(cparams, il), static_cast<int>(hparams.n_rot(layer)),
                          shift_rope_type(hparams), static_cast<int>(cparams.n_ctx_orig_yarn), model.get_rope_freq_base(cparams, il),
                          model.get_rope_freq_scale(cparams, il), cparams.yarn_ext_factor, cparams.yarn_attn_factor,
                          cparams.yarn_beta_fast, cparams.yarn_beta_slow);
        if (hadamard) k = llama_mul_mat_hadamard(ctx_, k, hadamard);
        return ggml_reshape_2d(ctx_, k, keys->ne[0], rows.size());
    }

    void add_values(ggml_tensor * v, const Group & rows) {
        if (!transposed_) {
            ggml_tensor * values = flat(v);
            ggml_tensor * gathered = expand(ggml_get_rows(ctx_, values, rows.t_src));
            expand(ggml_set_rows(ctx_, values, gathered, rows.t_dst));
            return;
        }
        // Flash attention off: memory is [cells, embedding]; one element is a row, gathered alike for each embedding column.
        const int64_t n_embd = v->ne[0], n_cells = v->ne[1];
        const size_t element = ggml_element_size(v);
        ggml_tensor * values = ggml_view_3d(ctx_, v, 1, n_cells, n_embd, element, element * static_cast<size_t>(n_cells), 0);
        ggml_tensor * ids = ggml_repeat_4d(ctx_, rows.t_src, rows.size(), n_embd, 1, 1);
        ggml_tensor * gathered = expand(ggml_get_rows(ctx_, values, ids));
        expand(ggml_set_rows(ctx_, values, gathered, rows.t_dst));
    }

    ggml_context * ctx_;
    ggml_cgraph * graph_;
    llama_context & context_;
    llama_kv_cache & cache_;
    bool transposed_;
};

}  // namespace

bool relocate_rows(llama_context & context, llama_kv_cache & cache, const std::vector<Row> & rows) {
    Group moved, shifted, values;
    for (const Row & row : rows) {
        if (row.delta != 0) {
            shifted.add(row);
        } else if (row.src != row.dst) {
            moved.add(row);  // never through rope: a rotation by zero would requantise the key
        }
        if (row.src != row.dst) values.add(row);
    }
    if (moved.empty() && shifted.empty()) return true;

    const std::vector<uint32_t> layers = cache.get_layer_ids();
    const size_t max_nodes = layers.size() * 24 + 16;
    const ggml_init_params params{ggml_tensor_overhead() * max_nodes + ggml_graph_overhead_custom(max_nodes, false), nullptr, true};
    ggml_context_ptr ctx{ggml_init(params)};
    ggml_cgraph * graph = ggml_new_graph_custom(ctx.get(), max_nodes, false);

    moved.declare(ctx.get(), false);
    shifted.declare(ctx.get(), true);
    values.declare(ctx.get(), false);
    ggml_tensor * hadamard = shifted.empty() ? nullptr : cache.build_input_k_rot(ctx.get());

    GraphBuilder builder{ctx.get(), graph, context, cache};
    for (const uint32_t layer : layers) builder.add_layer(layer, moved, shifted, values, hadamard);

    ggml_backend_sched_t sched = context.get_sched();
    context.synchronize();
    ggml_backend_sched_reset(sched);
    if (!ggml_backend_sched_alloc_graph(sched, graph)) return false;
    moved.upload();
    shifted.upload();
    values.upload();
    if (hadamard && hadamard->buffer) cache.set_input_k_rot(hadamard);
    const ggml_status status = context.graph_compute(graph, true);
    context.synchronize();
    ggml_backend_sched_reset(sched);
    return status == GGML_STATUS_SUCCESS;
}

}  // namespace ot
