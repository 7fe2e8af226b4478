#include "llama/relocation.h"

#include "llama/access.h"
#include "llama/pristine.h"
#include "llama/turns.h"
#include "llama-model.h"

#include <ggml-backend.h>
#include <ggml-cpp.h>

#include <algorithm>
#include <memory>

namespace ot {
namespace {

// Ids as a graph input.
template <typename T>
struct Ids {
    std::vector<T> values;
    ggml_tensor * tensor = nullptr;

    void declare(ggml_context * ctx) {
        if (values.empty()) return;
        tensor = ggml_new_tensor_1d(ctx, sizeof(T) == 8 ? GGML_TYPE_I64 : GGML_TYPE_I32, static_cast<int64_t>(values.size()));
        ggml_set_input(tensor);
    }

    void upload() const {
        if (tensor && tensor->buffer) ggml_backend_tensor_set(tensor, values.data(), 0, values.size() * sizeof(T));
    }
};

// Rows that are treated alike. Which ids a group uses depends on what is done with it.
struct Group {
    Ids<int32_t> src;    // cell, or slot of a pristine key
    Ids<int64_t> dst;    // cell
    Ids<int32_t> delta;  // positions to rotate by
    Ids<int64_t> slot;   // where the pristine key is put aside
    Turns turns;         // what `delta` means, where one rotation fits all layers

    bool empty() const { return src.values.empty(); }
    int64_t size() const { return static_cast<int64_t>(src.values.size()); }

    // Cells from the first to behind the last that is read or written.
    int64_t span() const {
        const int64_t last_src = *std::max_element(src.values.begin(), src.values.end());
        const int64_t last_dst = *std::max_element(dst.values.begin(), dst.values.end());
        return 1 + std::max(last_src, last_dst);
    }

    // in_memory: rows lie in this process's memory.
    void declare(ggml_context * ctx, bool in_memory) {
        src.declare(ctx);
        dst.declare(ctx);
        delta.declare(ctx);
        slot.declare(ctx);
        if (!in_memory) turns.declare(ctx);
    }

    void upload() const {
        src.upload();
        dst.upload();
        delta.upload();
        slot.upload();
        turns.upload();
    }
};

struct Groups {
    Group moved;   // keys that only move
    Group first;   // keys that shift for the first time: from the cache, and put aside
    Group again;   // keys that have shifted before: from what was put aside
    Group values;  // values that move

    bool shifts() const { return !first.empty() || !again.empty(); }
    bool empty() const { return moved.empty() && !shifts(); }
};

// `keep`: first shifts put the untouched key aside.
Groups group(const std::vector<Row> & rows, PristineKeys & pristine, bool keep) {
    Groups groups;
    for (const Row & row : rows) {
        if (row.src != row.dst) {
            groups.values.src.values.push_back(static_cast<int32_t>(row.src));
            groups.values.dst.values.push_back(row.dst);
        }
        if (row.delta == 0 && row.src == row.dst) continue;
        // Never through rope without need: a rotation by zero would round the key again.
        Group & target = row.delta == 0 ? groups.moved : pristine.has(row.src) ? groups.again : groups.first;
        target.dst.values.push_back(row.dst);
        if (&target == &groups.again) {
            target.src.values.push_back(pristine.slot(row.src));
            target.delta.values.push_back(pristine.shifted_by(row.src) + row.delta);
        } else {
            target.src.values.push_back(static_cast<int32_t>(row.src));
        }
        if (&target == &groups.first) {
            target.delta.values.push_back(row.delta);
            if (keep) target.slot.values.push_back(pristine.claim(row.src));
        }
    }
    return groups;
}

void move_entries(const std::vector<Row> & rows, PristineKeys & pristine) {
    std::vector<PristineKeys::Entry> entries;
    entries.reserve(rows.size());
    for (const Row & row : rows) {
        entries.push_back(pristine.take(row.src));
        entries.back().shifted_by += row.delta;
    }
    for (size_t i = 0; i < rows.size(); ++i) pristine.put(rows[i].dst, entries[i]);
}

// Transposed values that lie in this process's memory. A channel's cells are neighbours, and few enough for a core's
// cache: rows are moved channel by channel, and nothing else is touched.
template <typename Element>
void move_in_channels(const ggml_tensor & values, const Group & rows, int thread, int n_threads) {
    const size_t n = rows.src.values.size();
    std::vector<Element> gathered(n);
    for (int64_t channel = thread; channel < values.ne[1]; channel += n_threads) {
        auto * cells = reinterpret_cast<Element *>(static_cast<char *>(values.data) + static_cast<size_t>(channel) * values.nb[1]);
        for (size_t i = 0; i < n; ++i) gathered[i] = cells[rows.src.values[i]];
        for (size_t i = 0; i < n; ++i) cells[rows.dst.values[i]] = gathered[i];
    }
}

// A ggml_custom1_op_t on [cells, channels], in place; `group` is the Group to move.
void move_transposed(ggml_tensor * dst, const ggml_tensor *, int thread, int n_threads, void * group) {
    const auto & rows = *static_cast<const Group *>(group);
    if (ggml_element_size(dst) == sizeof(uint16_t)) {
        move_in_channels<uint16_t>(*dst, rows, thread, n_threads);
    } else {
        move_in_channels<uint32_t>(*dst, rows, thread, n_threads);
    }
}

bool is_in_memory(const ggml_tensor * tensor) { return ggml_backend_buffer_is_host(tensor->buffer); }

class GraphBuilder {
public:
    GraphBuilder(ggml_context * ctx, ggml_cgraph * graph, llama_context & context, llama_kv_cache & cache, PristineKeys & pristine)
        : ctx_(ctx), graph_(graph), context_(context), cache_(cache), pristine_(pristine), transposed_(access::is_v_transposed(cache)) {}

    void add_layer(uint32_t layer, const Groups & rows, ggml_tensor * hadamard) {
        ggml_tensor * keys = flat(cache_.get_k_storage(static_cast<int32_t>(layer)));
        // Every gather of a tensor stands before its first scatter: destinations may be sources of other rows.
        ggml_tensor * moved = gather(keys, rows.moved);
        ggml_tensor * first = gather(keys, rows.first);
        ggml_tensor * again = rows.again.empty() ? nullptr : gather(pristine_.tensor(layer), rows.again);
        if (first && rows.first.slot.tensor) expand(ggml_set_rows(ctx_, pristine_.tensor(layer), first, rows.first.slot.tensor));
        scatter(keys, moved, rows.moved);
        scatter(keys, rotated(layer, first, rows.first, hadamard), rows.first);
        scatter(keys, rotated(layer, again, rows.again, hadamard), rows.again);
        if (!rows.values.empty()) add_values(value_storage(cache_, layer), rows.values);
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
        const llama_hparams & hparams = context_.get_model().hparams;
        if (!hparams.has_rope(layer) || hparams.rope_type == LLAMA_ROPE_TYPE_NONE) return gathered;

        ggml_tensor * k = ggml_reshape_3d(ctx_, gathered, hparams.n_embd_head_k(layer), hparams.n_head_kv(layer), rows.size());
        if (hadamard) k = llama_mul_mat_hadamard(ctx_, k, hadamard);  // its own inverse
        k = rows.turns.ready() ? rows.turns.apply(ctx_, k) : roped(layer, k, rows.delta.tensor);
        if (hadamard) k = llama_mul_mat_hadamard(ctx_, k, hadamard);
        return ggml_reshape_2d(ctx_, k, gathered->ne[0], rows.size());
    }

    ggml_tensor * roped(uint32_t layer, ggml_tensor * k, ggml_tensor * delta) {
        const int32_t il = static_cast<int32_t>(layer);
        const llama_model & model = context_.get_model();
        const llama_cparams & cparams = context_.get_cparams();
        return ggml_rope_ext(ctx_, k, delta, model.get_rope_factors(cparams, il), static_cast<int>(model.hparams.n_rot(layer)),
                             shift_rope_type(model), static_cast<int>(cparams.n_ctx_orig_yarn), model.get_rope_freq_base(cparams, il),
                             model.get_rope_freq_scale(cparams, il), cparams.yarn_ext_factor, cparams.yarn_attn_factor,
                             cparams.yarn_beta_fast, cparams.yarn_beta_slow);
    }

    void add_values(ggml_tensor * v, const Group & rows) {
        if (!transposed_) {
            ggml_tensor * values = flat(v);
            scatter(values, gather(values, rows), rows);
            return;
        }
        // Flash attention off: memory is [cells, embedding].
        const int64_t span = rows.span();
        ggml_tensor * columns = ggml_view_2d(ctx_, v, span, v->ne[0], ggml_element_size(v) * static_cast<size_t>(v->ne[1]), 0);
        const size_t size = ggml_element_size(v);  // no quantised type is ever transposed
        if (is_in_memory(v) && (size == sizeof(uint16_t) || size == sizeof(uint32_t))) {
            expand(ggml_map_custom1_inplace(ctx_, columns, move_transposed, GGML_N_TASKS_MAX, const_cast<Group *>(&rows)));
            return;
        }
        // Elsewhere with what every backend has: turned there and back, whole rows can be gathered and scattered.
        // Through f32 and a contiguous copy, since ggml copies elements of one type, or to strided places, one call each.
        ggml_tensor * table = expand(ggml_cast(ctx_, ggml_transpose(ctx_, columns), GGML_TYPE_F32));
        ggml_tensor * moved = ggml_set_rows(ctx_, table, gather(table, rows), rows.dst.tensor);
        expand(ggml_cpy(ctx_, ggml_cast(ctx_, ggml_transpose(ctx_, moved), v->type), columns));
    }

    ggml_context * ctx_;
    ggml_cgraph * graph_;
    llama_context & context_;
    llama_kv_cache & cache_;
    PristineKeys & pristine_;
    bool transposed_;
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

Relocator::Relocator() = default;
Relocator::~Relocator() = default;

bool Relocator::run(llama_context & context, llama_kv_cache & cache, PristineKeys & pristine, const std::vector<Row> & rows) {
    const bool shifts = std::any_of(rows.begin(), rows.end(), [](const Row & row) { return row.delta != 0; });
    // Without memory for them the stored keys are rotated again and again: less exact, but the session goes on.
    Groups groups = group(rows, pristine, shifts && pristine.allocate());
    if (groups.empty()) return true;

    const std::vector<uint32_t> layers = cache.get_layer_ids();
    const SharedRotation shared = shared_rotation(context, layers);
    groups.first.turns.compute(shared, groups.first.delta.values);
    groups.again.turns.compute(shared, groups.again.delta.values);
    if (!scheduler_) scheduler_ = std::make_unique<Scheduler>(context, layers.size());
    const size_t max_nodes = scheduler_->max_nodes;
    const ggml_init_params params{ggml_tensor_overhead() * max_nodes + ggml_graph_overhead_custom(max_nodes, false), nullptr, true};
    ggml_context_ptr ctx{ggml_init(params)};
    ggml_cgraph * graph = ggml_new_graph_custom(ctx.get(), max_nodes, false);

    const bool in_memory = std::all_of(layers.begin(), layers.end(), [&cache](uint32_t layer) {
        return is_in_memory(cache.get_k_storage(static_cast<int32_t>(layer)));
    });
    for (Group * rows : {&groups.moved, &groups.first, &groups.again, &groups.values}) rows->declare(ctx.get(), in_memory);
    ggml_tensor * hadamard = groups.shifts() ? cache.build_input_k_rot(ctx.get()) : nullptr;

    GraphBuilder builder{ctx.get(), graph, context, cache, pristine};
    for (const uint32_t layer : layers) builder.add_layer(layer, groups, hadamard);

    ggml_backend_sched_t sched = scheduler_->sched.get();
    context.synchronize();
    ggml_backend_sched_reset(sched);
    if (!ggml_backend_sched_alloc_graph(sched, graph)) return false;
    for (const Group * rows : {&groups.moved, &groups.first, &groups.again, &groups.values}) rows->upload();
    if (hadamard && hadamard->buffer) cache.set_input_k_rot(hadamard);
    const ggml_status status = ggml_backend_sched_graph_compute(sched, graph);
    if (status != GGML_STATUS_SUCCESS) return false;
    move_entries(rows, pristine);
    return true;
}

}  // namespace ot
