#include "llama/cpu_values.h"

#include "llama/access.h"

#include "llama-kv-cache.h"

#include <algorithm>

namespace ot {

std::unique_ptr<CpuValues> CpuValues::of(llama_kv_cache & cache, const std::vector<uint32_t> & layers, const Groups & groups) {
    if (groups.values.empty()) return nullptr;
    std::unique_ptr<CpuValues> values{new CpuValues(groups.values)};
    const bool transposed = access::is_v_transposed(cache);
    size_t scratch = 0;
    for (const uint32_t layer : layers) {
        ggml_tensor * tensor = value_storage(cache, layer);
        const size_t size = ggml_element_size(tensor);  // no quantised type is ever transposed
        if (!ggml_backend_buffer_is_host(tensor->buffer) || (transposed && size != sizeof(uint16_t) && size != sizeof(uint32_t))) return nullptr;
        const size_t row = transposed ? size * static_cast<size_t>(tensor->ne[1]) : tensor->nb[1];
        values->layers_.push_back({values.get(), tensor, row, transposed ? static_cast<size_t>(tensor->ne[0]) : 0});
        scratch = std::max(scratch, groups.values.count() * (transposed ? size * GGML_MAX_N_THREADS : row));
    }
    values->scratch_.reset(new char[scratch]);
    return values;
}

CpuValues::CpuValues(const Group & rows) : rows_(rows) {
    for (size_t i = 0; i < rows.count(); ++i) {
        const auto src = static_cast<size_t>(rows.src.values[i]), dst = static_cast<size_t>(rows.dst.values[i]);
        if (!runs_.empty() && runs_.back().src + runs_.back().length == src && runs_.back().dst + runs_.back().length == dst) {
            ++runs_.back().length;
        } else {
            runs_.push_back({src, dst, 1});
        }
    }
}

void CpuValues::add_layer(ggml_context * ctx, ggml_cgraph * graph) {
    Layer & own = layers_[next_++];
    const auto add = [&](ggml_custom1_op_t pass) {
        ggml_build_forward_expand(graph, ggml_map_custom1_inplace(ctx, own.tensor, pass, GGML_N_TASKS_MAX, &own));
    };
    if (own.channels > 0) {
        add(move_channels);
    } else {
        add(gather);  // all of them before the first is written: destinations may be sources of other rows
        add(scatter);
    }
}

void CpuValues::gather(ggml_tensor *, const ggml_tensor *, int thread, int n_threads, void * layer) {
    const auto & own = *static_cast<const Layer *>(layer);
    const Group & rows = own.self->rows_;
    copy_rows(static_cast<const char *>(own.tensor->data), ids(rows.src), own.self->scratch_.get(), identity, own.row, {rows.count(), thread, n_threads});
}

void CpuValues::scatter(ggml_tensor *, const ggml_tensor *, int thread, int n_threads, void * layer) {
    const auto & own = *static_cast<const Layer *>(layer);
    const Group & rows = own.self->rows_;
    copy_rows(own.self->scratch_.get(), identity, static_cast<char *>(own.tensor->data), ids(rows.dst), own.row, {rows.count(), thread, n_threads});
}

void CpuValues::move_channels(ggml_tensor *, const ggml_tensor *, int thread, int n_threads, void * layer) {
    const auto & own = *static_cast<const Layer *>(layer);
    if (ggml_element_size(own.tensor) == sizeof(uint16_t)) {
        own.self->move_channels<uint16_t>(own, thread, n_threads);
    } else {
        own.self->move_channels<uint32_t>(own, thread, n_threads);
    }
}

// A channel's cells are neighbours, and few enough for a core's cache.
template <typename Element>
void CpuValues::move_channels(const Layer & layer, int thread, int n_threads) const {
    Element * const gathered = reinterpret_cast<Element *>(scratch_.get()) + static_cast<size_t>(thread) * rows_.count();
    const Share share{layer.channels, thread, n_threads};
    for (size_t channel = share.begin; channel < share.end; ++channel) {
        auto * cells = reinterpret_cast<Element *>(static_cast<char *>(layer.tensor->data) + channel * layer.row);
        Element * next = gathered;
        for (const Run & run : runs_) next = std::copy_n(cells + run.src, run.length, next);
        const Element * from = gathered;
        for (const Run & run : runs_) {
            std::copy_n(from, run.length, cells + run.dst);
            from += run.length;
        }
    }
}

}  // namespace ot
