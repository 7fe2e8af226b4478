#include "llama/memory.h"

#include "llama/access.h"
#include "llama/fill.h"
#include "llama/inner_caches.h"
#include "llama/recurrent_state.h"
#include "llama-batch.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace ot {

// Forwards everything to the memory it owns, except where a token goes (init_batch) and whether positions can shift.
class TideMemory final : public llama_memory_i {
public:
    TideMemory(llama_context & context, llama_memory_ptr inner, CacheHandle & handle)
        : inner_(std::move(inner)), kind_(*inner_), handle_(&handle) {
        for (llama_kv_cache * cache : kind_.caches()) parts_.push_back(std::make_unique<CachePart>(*cache));
        // The first speaks for all, also of original keys.
        std::stable_partition(parts_.begin(), parts_.end(), [](const auto & part) { return !part->layers().empty(); });
        if (kind_.recurrent()) recurrent_.emplace(context, *kind_.recurrent());
    }

    ~TideMemory() override {
        if (handle_) handle_->memory_ = nullptr;
    }

    // The memory as it was before it was taken over, without a token. REQUIRES: this object is destroyed next.
    llama_memory_ptr release() {
        handle_ = nullptr;
        inner_->clear(false);
        return std::move(inner_);
    }

    const std::vector<std::unique_ptr<CachePart>> & parts() const { return parts_; }
    CachePart & first() const { return *parts_.front(); }
    RecurrentState * recurrent() { return recurrent_ ? &*recurrent_ : nullptr; }
    const RecurrentState * recurrent() const { return recurrent_ ? &*recurrent_ : nullptr; }

    // Room for original keys in all caches or in none: a token's are put aside, or forgotten, together.
    void allocate_originals() {
        if (std::all_of(parts_.begin(), parts_.end(), [](const auto & part) { return part->original_keys().allocate(); })) return;
        for (const auto & part : parts_) part->original_keys().give_up();
    }

    // Where tokens went or positions changed, the recurrent state's is that of the newest token.
    void follow() {
        if (recurrent_) recurrent_->set_position(first().cache().seq_pos_max(0));
    }

    void place_next(std::vector<uint32_t> cells) { next_cells_ = std::move(cells); }
    llama_memory_context_ptr init_batch(llama_batch_allocr & balloc, uint32_t n_ubatch, bool embd_all) override;
    llama_memory_context_ptr init_full() override { return inner_->init_full(); }
    llama_memory_context_ptr init_update(llama_context * context, bool optimize) override { return inner_->init_update(context, optimize); }
    bool get_can_shift() const override { return true; }

    void clear(bool data) override { inner_->clear(data); }
    bool seq_rm(llama_seq_id seq, llama_pos p0, llama_pos p1) override { return inner_->seq_rm(seq, p0, p1); }
    void seq_cp(llama_seq_id src, llama_seq_id dst, llama_pos p0, llama_pos p1) override { inner_->seq_cp(src, dst, p0, p1); }
    void seq_keep(llama_seq_id seq) override { inner_->seq_keep(seq); }
    // The stock versions mark a pending K-shift, which aborts the process under M-RoPE. Positions change through
    // relocate() alone, so these do nothing rather than that.
    void seq_add(llama_seq_id, llama_pos, llama_pos, llama_pos) override {}
    void seq_div(llama_seq_id, llama_pos, llama_pos, int) override {}
    llama_pos seq_pos_min(llama_seq_id seq) const override { return inner_->seq_pos_min(seq); }
    llama_pos seq_pos_max(llama_seq_id seq) const override { return inner_->seq_pos_max(seq); }
    std::map<ggml_backend_buffer_type_t, size_t> memory_breakdown() const override { return inner_->memory_breakdown(); }
    void state_write(llama_io_write_i & io, llama_seq_id seq, llama_state_seq_flags flags) const override { inner_->state_write(io, seq, flags); }
    void state_read(llama_io_read_i & io, llama_seq_id seq, llama_state_seq_flags flags) override { inner_->state_read(io, seq, flags); }

private:
    llama_memory_ptr inner_;
    InnerCaches kind_;
    std::vector<std::unique_ptr<CachePart>> parts_;
    std::optional<RecurrentState> recurrent_;
    CacheHandle * handle_;
    std::vector<uint32_t> next_cells_;
};

llama_memory_context_ptr TideMemory::init_batch(llama_batch_allocr & balloc, uint32_t n_ubatch, bool embd_all) {
    // Without a placement (llama.cpp's own warm-up and reserve runs) the memory looks for itself.
    if (next_cells_.empty()) return inner_->init_batch(balloc, n_ubatch, embd_all);
    const std::vector<uint32_t> cells = std::exchange(next_cells_, {});
    // Nobody asks a failed one for more than its status, so that it may be of any class.
    const auto refuse = [] { return std::make_unique<llama_kv_cache_context>(LLAMA_MEMORY_STATUS_FAILED_PREPARE); };

    balloc.split_reset();
    std::vector<llama_ubatch> ubatches;
    llama_kv_cache::slot_info_vec_t slots;
    size_t next = 0;
    for (;;) {
        llama_ubatch ubatch = kind_.split(balloc, n_ubatch);
        if (ubatch.n_tokens == 0) break;
        if (next + ubatch.n_tokens > cells.size()) return refuse();
        llama_kv_cache::slot_info slot;
        slot.resize(1);
        slot.s0 = slot.s1 = 0;
        slot.strm[0] = 0;
        const auto first = cells.begin() + static_cast<std::ptrdiff_t>(next);
        slot.idxs[0].assign(first, first + ubatch.n_tokens);
        next += ubatch.n_tokens;
        slots.push_back(std::move(slot));
        ubatches.push_back(std::move(ubatch));
    }
    if (next != cells.size() || ubatches.empty()) return refuse();

    // apply_ubatch on a used cell would purge all older positions of the sequence.
    std::vector<bool> taken(first().cache().get_size());
    for (const uint32_t cell : cells) {
        if (cell >= taken.size() || taken[cell]) return refuse();
        for (const auto & part : parts_) {
            if (!part->is_empty(cell)) return refuse();
        }
        taken[cell] = true;
    }
    return kind_.place(std::move(slots), std::move(ubatches));
}

std::unique_ptr<CacheHandle> CacheHandle::attach(llama_context & context, std::string & reason) {
    llama_memory_ptr & memory = access::memory_of(context);
    reason = why_not(context, memory.get());
    if (!reason.empty()) return nullptr;
    std::unique_ptr<CacheHandle> handle{new CacheHandle(context)};

    // Canary: our view of the object must say what the public API says, before anything relies on it.
    const InnerCaches inner{*memory};
    for (llama_kv_cache * cache : inner.caches()) {
        const bool is_used = cache->get_cells(0).get_used() != 0;
        if (cache->get_size() >= llama_n_ctx(&context) && !is_used && llama_memory_seq_pos_max(memory.get(), 0) == -1) continue;
        reason = is_used ? "the context is not empty" : "llama.cpp's cache is laid out differently than expected";
        return nullptr;
    }

    auto decorated = std::make_unique<TideMemory>(context, std::move(memory), *handle);
    handle->memory_ = decorated.get();
    memory = std::move(decorated);
    return handle;
}

CacheHandle::~CacheHandle() {
    if (!memory_) return;
    context_.synchronize();
    llama_memory_ptr & memory = access::memory_of(context_);
    llama_memory_ptr inner = memory_->release();
    memory = std::move(inner);  // which destroys the decorator
}

uint32_t CacheHandle::n_cells() const { return memory_ ? memory_->first().cache().get_size() : 0; }
bool CacheHandle::is_empty(uint32_t cell) const { return !memory_ || memory_->first().is_empty(cell); }
int32_t CacheHandle::position(uint32_t cell) const { return memory_ ? memory_->first().position(cell) : -1; }
bool CacheHandle::transposed_values() const { return memory_ && access::is_v_transposed(memory_->first().cache()); }
bool CacheHandle::has_recurrent_state() const { return memory_ && memory_->recurrent(); }

uint64_t CacheHandle::bytes_per_cell() const {
    if (!memory_) return 0;
    uint64_t total = 0;
    for (const auto & part : memory_->parts()) {
        for (const auto & [type, bytes] : part->cache().memory_breakdown()) total += bytes;
    }
    return total / n_cells();
}

uint64_t CacheHandle::bytes_allocated() const {
    if (!memory_) return 0;
    uint64_t total = bytes_per_cell() * n_cells() + state_before_.capacity();
    for (const auto & part : memory_->parts()) total += part->original_keys().bytes();
    if (const RecurrentState * state = memory_->recurrent()) total += state->bytes();
    return total;
}

void CacheHandle::place_next(std::vector<uint32_t> cells) {
    if (memory_) memory_->place_next(std::move(cells));
}

void CacheHandle::begin_unit(bool whole) {
    if (!memory_ || !memory_->recurrent()) return;
    position_before_ = memory_->recurrent()->position();
    state_before_.clear();
    if (whole) memory_->recurrent()->copy(state_before_);
}

bool CacheHandle::undo_unit() {
    RecurrentState * state = memory_ ? memory_->recurrent() : nullptr;
    if (!state) return true;
    if (state_before_.empty()) return state->position() == position_before_;
    return state->bring_back(state_before_.data(), state_before_.size());
}

void CacheHandle::remove(const std::vector<uint32_t> & cells) {
    if (!memory_) return;
    for (const auto & part : memory_->parts()) {
        for (const uint32_t cell : cells) part->remove(cell);
    }
    memory_->follow();
}

void CacheHandle::hide(const std::vector<uint32_t> & cells) {
    if (!memory_) return;
    for (const auto & part : memory_->parts()) {
        for (const uint32_t cell : cells) part->hide(cell);
    }
    memory_->follow();
}

bool CacheHandle::relocate(const std::vector<Row> & rows, const std::vector<uint32_t> & freed) {
    if (rows.empty()) {
        remove(freed);
        return true;
    }
    if (!memory_) return false;
    if (std::any_of(rows.begin(), rows.end(), [](const Row & row) { return row.delta != 0; })) memory_->allocate_originals();
    for (const auto & part : memory_->parts()) {
        if (!part->relocate(context_, rows, freed)) return false;
    }
    memory_->follow();
    return true;
}

bool CacheHandle::try_shift(const Row & row) {
    if (!memory_) return false;
    return std::all_of(memory_->parts().begin(), memory_->parts().end(), [&](const auto & part) { return part->try_shift(context_, row); });
}

void CacheHandle::occupy(uint32_t cell, int32_t t, int32_t y, int32_t x) {
    if (!memory_) return;
    for (const auto & part : memory_->parts()) part->occupy({cell, t, y, x});
    memory_->follow();
}

void CacheHandle::fill_random(uint32_t seed) {
    if (!memory_) return;
    context_.synchronize();
    for (const auto & part : memory_->parts()) fill_rows(part->cache(), seed);
}

void CacheHandle::write(const std::vector<uint32_t> & cells, ByteWriter & out) const {
    if (!memory_) return;
    context_.synchronize();
    const size_t n_parts = memory_->parts().size();
    for (size_t i = 0; i < n_parts; ++i) {
        const Following following{i + 1 < n_parts, i + 1 == n_parts && memory_->recurrent()};
        const CachePart & part = *memory_->parts()[i];
        write_rows(context_, part.cache(), part.original_keys(), cells, following, out);
    }
    if (const RecurrentState * state = memory_->recurrent()) {
        std::vector<uint8_t> bytes;
        state->copy(bytes);
        out.put(static_cast<uint64_t>(bytes.size()));
        if (uint8_t * to = out.room(bytes.size())) std::copy(bytes.begin(), bytes.end(), to);
    }
}

SavedMemory CacheHandle::parse(uint32_t n_rows, ByteReader & in) const {
    if (!memory_) throw StateError{"there is no cache to fill"};
    SavedMemory saved;
    const size_t n_parts = memory_->parts().size();
    for (size_t i = 0; i < n_parts; ++i) {
        const Following following{i + 1 < n_parts, i + 1 == n_parts && memory_->recurrent()};
        saved.caches.push_back(SavedRows::parse(context_, memory_->parts()[i]->cache(), n_rows, following, in));
        if (!memory_->parts()[i]->layers().empty() && !saved.caches.back().has_same_originals(saved.caches.front())) throw StateError{"its original keys are damaged"};
    }
    if (RecurrentState * state = memory_->recurrent()) {
        const auto n = in.get<uint64_t>();
        if (n > in.left()) throw StateError{"it ends too early"};
        saved.state_bytes = static_cast<size_t>(n);
        saved.state = in.take(saved.state_bytes);
        // Only llama.cpp knows its format, and it tells by trying.
        std::vector<uint8_t> now;
        state->copy(now);
        const bool fits = state->bring_back(saved.state, saved.state_bytes);
        const bool is_back = state->bring_back(now.data(), now.size());
        memory_->follow();
        if (!fits || !is_back) throw StateError{"the state of its recurrent layers is damaged, or another model's"};
    }
    return saved;
}

void CacheHandle::restore(const SavedMemory & saved, const std::vector<PlacedCell> & cells) {
    if (!memory_) return;
    context_.synchronize();
    if (saved.caches.front().has_originals()) memory_->allocate_originals();
    for (size_t i = 0; i < saved.caches.size(); ++i) memory_->parts()[i]->restore(saved.caches[i], cells);
    if (RecurrentState * state = memory_->recurrent()) {
        state->bring_back(saved.state, saved.state_bytes);  // which parse() has tried
        memory_->follow();
    }
}

const std::vector<std::unique_ptr<CachePart>> & CacheHandle::parts() const { return memory_->parts(); }
void CacheHandle::synchronize() const { context_.synchronize(); }

std::string CacheHandle::disagreement() const {
    if (!memory_) return "";
    for (const auto & part : memory_->parts()) {
        for (uint32_t cell = 0; cell < n_cells(); ++cell) {
            if (part->position(cell) == position(cell)) continue;
            return "cell " + std::to_string(cell) + " holds position " + std::to_string(position(cell)) + " in one cache, " +
                   std::to_string(part->position(cell)) + " in another";
        }
    }
    const RecurrentState * state = memory_->recurrent();
    const int32_t newest = memory_->first().cache().seq_pos_max(0);
    if (!state || state->position() == newest) return "";
    return "the recurrent layers are at position " + std::to_string(state->position()) + ", the cache is at " + std::to_string(newest);
}

const CachePart * CacheHandle::part_with(uint32_t layer) const {
    if (!memory_) return nullptr;
    for (const auto & part : memory_->parts()) {
        if (part->has_layer(layer)) return part.get();
    }
    return nullptr;
}

std::vector<uint32_t> CacheHandle::layers() const {
    std::vector<uint32_t> all;
    if (!memory_) return all;
    for (const auto & part : memory_->parts()) {
        const std::vector<uint32_t> own = part->layers();
        all.insert(all.end(), own.begin(), own.end());
    }
    std::sort(all.begin(), all.end());
    return all;
}

ggml_type CacheHandle::key_type(uint32_t layer) const { return part_with(layer)->keys(layer)->type; }

size_t CacheHandle::key_width(uint32_t layer) const {
    const CachePart * part = part_with(layer);
    return part ? static_cast<size_t>(part->keys(layer)->ne[0]) : 0;
}

std::vector<float> CacheHandle::key_row(uint32_t layer, uint32_t cell) const {
    const CachePart * part = part_with(layer);
    if (!part || cell >= n_cells()) return {};
    context_.synchronize();
    return part->key_row(layer, cell);
}

size_t CacheHandle::value_width(uint32_t layer) const {
    const CachePart * part = part_with(layer);
    return part ? static_cast<size_t>(value_storage(part->cache(), layer)->ne[0]) : 0;
}

std::vector<float> CacheHandle::value_row(uint32_t layer, uint32_t cell) const {
    const CachePart * part = part_with(layer);
    if (!part || cell >= n_cells()) return {};
    context_.synchronize();
    return part->value_row(layer, cell);
}

}  // namespace ot
