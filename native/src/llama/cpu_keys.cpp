#include "llama/cpu_keys.h"

#include "llama/original_keys.h"

#include "llama-kv-cache.h"

namespace ot {
namespace {

ggml_tensor * keys_of(llama_kv_cache & cache, uint32_t layer) { return cache.get_k_storage(static_cast<int32_t>(layer)); }

bool can_rotate(const Group & rows) { return rows.empty() || rows.rope.ready(); }

}  // namespace

std::unique_ptr<CpuKeys> CpuKeys::of(llama_kv_cache & cache, OriginalKeys & original_keys, const std::vector<uint32_t> & layers,
                                       const Groups & groups) {
    const bool has_places = groups.first.slot.values.size() == groups.first.src.values.size();
    if (layers.empty() || !rotate_half() || !has_places || !can_rotate(groups.first) || !can_rotate(groups.again)) return nullptr;
    const size_t row = keys_of(cache, layers.front())->nb[1];
    for (const uint32_t layer : layers) {
        const ggml_tensor & keys = *keys_of(cache, layer);
        if (keys.type != GGML_TYPE_F16 || keys.nb[1] != row || !ggml_backend_buffer_is_host(keys.buffer)) return nullptr;
    }
    return std::unique_ptr<CpuKeys>{new CpuKeys(cache, original_keys, groups, layers.size(), row)};
}

CpuKeys::CpuKeys(llama_kv_cache & cache, OriginalKeys & original_keys, const Groups & groups, size_t n_layers, size_t row)
    : cache_(cache), original_keys_(original_keys), groups_(groups), row_(row), rotate_(rotate_half()), moved_(new char[groups.moved.count() * row]) {
    layers_.reserve(n_layers);
}

void CpuKeys::add_layer(ggml_context * ctx, ggml_cgraph * graph, uint32_t layer) {
    ggml_tensor * keys = keys_of(cache_, layer);
    layers_.push_back({this, static_cast<char *>(keys->data), groups_.needs_originals() ? static_cast<char *>(original_keys_.tensor(layer)->data) : nullptr});
    // Every row that is read stands before the first that is written: destinations may be sources of other rows.
    for (const ggml_custom1_op_t pass : {gather, scatter}) {
        ggml_build_forward_expand(graph, ggml_map_custom1_inplace(ctx, keys, pass, GGML_N_TASKS_MAX, &layers_.back()));
    }
}

void CpuKeys::gather(ggml_tensor *, const ggml_tensor *, int thread, int n_threads, void * layer) {
    const auto & own = *static_cast<const Layer *>(layer);
    const CpuKeys & self = *own.self;
    const Group & first = self.groups_.first, & moved = self.groups_.moved;
    copy_rows(own.keys, ids(first.src), own.original_keys, ids(first.slot), self.row_, {first.count(), thread, n_threads});
    copy_rows(own.keys, ids(moved.src), self.moved_.get(), identity, self.row_, {moved.count(), thread, n_threads});
}

void CpuKeys::scatter(ggml_tensor *, const ggml_tensor *, int thread, int n_threads, void * layer) {
    const auto & own = *static_cast<const Layer *>(layer);
    const CpuKeys & self = *own.self;
    const Group & first = self.groups_.first, & again = self.groups_.again, & moved = self.groups_.moved;
    self.rotate(own, first, ids(first.slot), thread, n_threads);
    self.rotate(own, again, ids(again.src), thread, n_threads);
    const Group & back = self.groups_.back;
    copy_rows(own.original_keys, ids(back.src), own.keys, ids(back.dst), self.row_, {back.count(), thread, n_threads});
    copy_rows(self.moved_.get(), identity, own.keys, ids(moved.dst), self.row_, {moved.count(), thread, n_threads});
}

// From the original keys in their slots to the cells where the rows belong.
template <typename Slot>
void CpuKeys::rotate(const Layer & layer, const Group & rows, Slot slot, int thread, int n_threads) const {
    const auto head = static_cast<size_t>(rows.rope.head());
    const Share share{rows.count(), thread, n_threads};
    for (size_t i = share.begin; i < share.end; ++i) {
        const auto * from = reinterpret_cast<const uint16_t *>(layer.original_keys + slot(i) * row_);
        auto * to = reinterpret_cast<uint16_t *>(layer.keys + static_cast<size_t>(rows.dst.values[i]) * row_);
        for (size_t at = 0; at < row_ / sizeof(uint16_t); at += head) {
            rotate_(from + at, to + at, rows.rope.cosines(i), rows.rope.sines(i), static_cast<int64_t>(head / 2));
        }
    }
}

}  // namespace ot
