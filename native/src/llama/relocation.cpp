#include "llama/relocation.h"

#include "llama/access.h"
#include "llama/groups.h"
#include "llama/cpu_keys.h"
#include "llama/cpu_values.h"
#include "llama/original_keys.h"
#include "llama-model.h"

#include <ggml-backend.h>
#include <ggml-cpp.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace ot {
namespace {

void move_entries(const std::vector<Row> & rows, OriginalKeys & original_keys) {
    std::vector<OriginalKeys::Entry> entries;
    entries.reserve(rows.size());
    for (const Row & row : rows) {
        entries.push_back(original_keys.take(row.src));
        entries.back().shifted_by += row.delta;
    }
    for (size_t i = 0; i < rows.size(); ++i) original_keys.put(rows[i].dst, entries[i]);
}

// The graph that runs on any backend, with rows of any type.
class GraphBuilder {
public:
    GraphBuilder(ggml_context * ctx, ggml_cgraph * graph, llama_context & context, llama_kv_cache & cache, OriginalKeys & original_keys)
        : ctx_(ctx), graph_(graph), context_(context), cache_(cache), original_keys_(original_keys) {}

    void add_keys(uint32_t layer, const Groups & rows, ggml_tensor * hadamard) {
        ggml_tensor * keys = flat(cache_.get_k_storage(static_cast<int32_t>(layer)));
        // Every gather of a tensor stands before its first scatter: destinations may be sources of other rows.
        ggml_tensor * moved = gather(keys, rows.moved);
        ggml_tensor * first = gather(keys, rows.first);
        ggml_tensor * again = rows.again.empty() ? nullptr : gather(original_keys_.tensor(layer), rows.again);
        ggml_tensor * back = rows.back.empty() ? nullptr : gather(original_keys_.tensor(layer), rows.back);
        if (first && rows.first.slot.tensor) expand(ggml_set_rows(ctx_, original_keys_.tensor(layer), first, rows.first.slot.tensor));
        scatter(keys, moved, rows.moved);
        scatter(keys, back, rows.back);
        scatter(keys, rotated(layer, first, rows.first, hadamard), rows.first);
        scatter(keys, rotated(layer, again, rows.again, hadamard), rows.again);
    }

    void add_values(uint32_t layer, const Group & rows) {
        ggml_tensor * v = value_storage(cache_, layer);
        if (!access::is_v_transposed(cache_)) {
            ggml_tensor * values = flat(v);
            scatter(values, gather(values, rows), rows);
            return;
        }
        // Flash attention off: memory is [cells, embedding]. Turned there and back, whole rows can be gathered and
        // scattered. Through f32 and a contiguous copy, since ggml copies elements of one type, or to strided places, one
        // call each.
        const size_t stride = ggml_element_size(v) * static_cast<size_t>(v->ne[1]);
        ggml_tensor * columns = ggml_view_2d(ctx_, v, rows.span(), v->ne[0], stride, 0);
        ggml_tensor * table = expand(ggml_cast(ctx_, ggml_transpose(ctx_, columns), GGML_TYPE_F32));
        ggml_tensor * moved = ggml_set_rows(ctx_, table, gather(table, rows), rows.dst.tensor);
        expand(ggml_cpy(ctx_, ggml_cast(ctx_, ggml_transpose(ctx_, moved), v->type), columns));
    }

private:
    ggml_tensor * expand(ggml_tensor * tensor) {
        ggml_build_forward_expand(graph_, tensor);
        return tensor;
    }

    ggml_tensor * gather(ggml_tensor * from, const Group & rows) {
        return rows.empty() ? nullptr : expand(ggml_get_rows(ctx_, from, rows.src.tensor));  // f32
    }

    void scatter(ggml_tensor * to, ggml_tensor * gathered, const Group & rows) {
        if (gathered) expand(ggml_set_rows(ctx_, to, gathered, rows.dst.tensor));
    }

    ggml_tensor * flat(ggml_tensor * tensor) { return ggml_view_2d(ctx_, tensor, tensor->ne[0], tensor->ne[1], tensor->nb[1], 0); }

    ggml_tensor * rotated(uint32_t layer, ggml_tensor * gathered, const Group & rows, ggml_tensor * hadamard) {
        if (!gathered) return nullptr;
        if (rotated_pairs(context_.get_model(), layer).count == 0) return gathered;

        const llama_hparams & hparams = context_.get_model().hparams;
        ggml_tensor * k = ggml_reshape_3d(ctx_, gathered, hparams.n_embd_head_k(layer), hparams.n_head_kv(layer), static_cast<int64_t>(rows.count()));
        if (hadamard) k = llama_mul_mat_hadamard(ctx_, k, hadamard);  // its own inverse
        k = rows.rope.ready() ? rows.rope.apply(ctx_, k) : roped(layer, k, rows.delta.tensor);
        if (hadamard) k = llama_mul_mat_hadamard(ctx_, k, hadamard);
        return ggml_reshape_2d(ctx_, k, gathered->ne[0], static_cast<int64_t>(rows.count()));
    }

    // The stored key has been scaled by attention's factor (longrope) already: a shift only turns.
    ggml_tensor * roped(uint32_t layer, ggml_tensor * k, ggml_tensor * delta) {
        const int32_t il = static_cast<int32_t>(layer);
        const llama_model & model = context_.get_model();
        const llama_cparams & cparams = context_.get_cparams();
        const RotatedPairs pairs = rotated_pairs(model, layer);
        ggml_tensor * turned = ggml_rope_ext(ctx_, k, delta, model.get_rope_factors(cparams, il), static_cast<int>(pairs.count),
                                             shift_rope_type(model), static_cast<int>(cparams.n_ctx_orig_yarn),
                                             model.get_rope_freq_base(cparams, il), model.get_rope_freq_scale(cparams, il),
                                             cparams.yarn_ext_factor, 1.0f, cparams.yarn_beta_fast, cparams.yarn_beta_slow);
        return pairs.first == 0 ? turned : ggml_rope_set_offset(turned, static_cast<int>(pairs.first));
    }

    ggml_context * ctx_;
    ggml_cgraph * graph_;
    llama_context & context_;
    llama_kv_cache & cache_;
    OriginalKeys & original_keys_;
};

// Tensors of one layer's graph at most, views and inputs among them.
constexpr size_t nodes_per_layer = 56;

// A backend keeps the number of the last decode, before the first of which it is not the user's.
void set_threads(ggml_backend_t backend, int n_threads) {
    ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(ggml_backend_get_device(backend));
    void * found = ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads");
    if (found) reinterpret_cast<ggml_backend_set_n_threads_t>(found)(backend, n_threads);
}

}  // namespace

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

struct Relocator::Scheduler {
    ggml_backend_sched_ptr sched;
    size_t max_nodes;

    Scheduler(llama_context & context, size_t n_layers) : max_nodes(n_layers * nodes_per_layer + 32) {
        ggml_backend_sched_t of_context = context.get_sched();
        std::vector<ggml_backend_t> backends;
        std::vector<ggml_backend_buffer_type_t> buffer_types;
        for (int i = 0; i < ggml_backend_sched_get_n_backends(of_context); ++i) {
            backends.push_back(ggml_backend_sched_get_backend(of_context, i));
            buffer_types.push_back(ggml_backend_sched_get_buffer_type(of_context, backends.back()));
            set_threads(backends.back(), context.get_cparams().n_threads_batch);
        }
        sched.reset(ggml_backend_sched_new(backends.data(), buffer_types.data(), static_cast<int>(backends.size()), max_nodes, false, false));
    }
};

// OMNITIDE_RELOCATION=graph: as on a GPU, to tell what differs.
Relocator::Relocator() : general_(std::getenv("OMNITIDE_RELOCATION") && std::string_view{std::getenv("OMNITIDE_RELOCATION")} == "graph") {}
Relocator::~Relocator() = default;

bool Relocator::run(llama_context & context, llama_kv_cache & cache, OriginalKeys & original_keys, const std::vector<Row> & rows) {
    const bool shifts = std::any_of(rows.begin(), rows.end(), [](const Row & row) { return row.delta != 0; });
    // Without memory for them the stored keys are rotated again and again: less exact, but the session goes on.
    Groups groups = group(rows, original_keys, shifts && original_keys.allocate());
    if (groups.empty()) return true;

    const std::vector<uint32_t> layers = cache.get_layer_ids();
    const SharedRotation shared = shared_rotation(context, layers);
    groups.first.rope.compute(shared, groups.first.delta.values);
    groups.again.rope.compute(shared, groups.again.delta.values);
    if (!scheduler_) scheduler_ = std::make_unique<Scheduler>(context, layers.size());
    const size_t max_nodes = scheduler_->max_nodes;
    const ggml_init_params params{ggml_tensor_overhead() * max_nodes + ggml_graph_overhead_custom(max_nodes, false), nullptr, true};
    ggml_context_ptr ctx{ggml_init(params)};
    ggml_cgraph * graph = ggml_new_graph_custom(ctx.get(), max_nodes, false);

    ggml_tensor * hadamard = groups.shifts() ? cache.build_input_k_rot(ctx.get()) : nullptr;
    const auto keys = hadamard || general_ ? nullptr : CpuKeys::of(cache, original_keys, layers, groups);
    const auto values = general_ ? nullptr : CpuValues::of(cache, layers, groups);
    if (!keys) {
        const bool in_memory = !general_ && std::all_of(layers.begin(), layers.end(), [&cache](uint32_t layer) {
            return ggml_backend_buffer_is_host(cache.get_k_storage(static_cast<int32_t>(layer))->buffer);
        });
        for (Group * rows : {&groups.moved, &groups.first, &groups.again, &groups.back}) rows->declare(ctx.get(), in_memory);
    }
    if (!values) groups.values.declare(ctx.get(), true);

    GraphBuilder builder{ctx.get(), graph, context, cache, original_keys};
    for (const uint32_t layer : layers) {
        if (keys) {
            keys->add_layer(ctx.get(), graph, layer);
        } else {
            builder.add_keys(layer, groups, hadamard);
        }
        if (values) {
            values->add_layer(ctx.get(), graph);
        } else if (!groups.values.empty()) {
            builder.add_values(layer, groups.values);
        }
    }

    ggml_backend_sched_t sched = scheduler_->sched.get();
    context.synchronize();
    ggml_backend_sched_reset(sched);
    if (!ggml_backend_sched_alloc_graph(sched, graph)) return false;
    for (const Group * rows : groups.all()) rows->upload();
    if (hadamard && hadamard->buffer) cache.set_input_k_rot(hadamard);
    const ggml_status status = ggml_backend_sched_graph_compute(sched, graph);
    if (status != GGML_STATUS_SUCCESS) return false;
    move_entries(rows, original_keys);
    return true;
}

}  // namespace ot
