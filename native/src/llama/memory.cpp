#include "llama/memory.h"

#include "llama/access.h"
#include "llama/fill.h"
#include "llama/original_keys.h"
#include "llama-batch.h"
#include "llama-model.h"

#include <cxxabi.h>

#include <cstdlib>
#include <typeinfo>
#include <utility>

namespace ot {

// Forwards everything to the cache it owns, except where a token goes (init_batch) and whether positions can shift.
class TideMemory final : public llama_memory_i {
public:
    TideMemory(llama_memory_ptr inner, llama_kv_cache & cache, CacheHandle & handle)
        : inner_(std::move(inner)), cache_(cache), original_keys_(cache), handle_(&handle) {}

    ~TideMemory() override {
        if (handle_) handle_->memory_ = nullptr;
    }

    // The cache as it was before it was taken over, without a token. REQUIRES: this object is destroyed next.
    llama_memory_ptr release() {
        handle_ = nullptr;
        cache_.clear(false);
        return std::move(inner_);
    }

    llama_kv_cache & cache() { return cache_; }
    const llama_kv_cells & cells() const { return cache_.get_cells(0); }
    // The cells are ours to keep: llama.cpp has no API to write one cell's position.
    llama_kv_cells & mutable_cells() { return const_cast<llama_kv_cells &>(cells()); }
    const OriginalKeys & original_keys() const { return original_keys_; }
    void restore(const SavedRows & rows, const std::vector<PlacedCell> & places);

    void remove(uint32_t cell) {
        if (cells().is_empty(cell)) return;
        mutable_cells().rm(cell);
        original_keys_.release(cell);
    }

    void place_next(std::vector<uint32_t> cells) { next_cells_ = std::move(cells); }
    llama_memory_context_ptr init_batch(llama_batch_allocr & balloc, uint32_t n_ubatch, bool embd_all) override;
    llama_memory_context_ptr init_full() override { return cache_.init_full(); }
    llama_memory_context_ptr init_update(llama_context * context, bool optimize) override { return cache_.init_update(context, optimize); }
    bool get_can_shift() const override { return true; }

    void clear(bool data) override { cache_.clear(data); }
    bool seq_rm(llama_seq_id seq, llama_pos p0, llama_pos p1) override { return cache_.seq_rm(seq, p0, p1); }
    void seq_cp(llama_seq_id src, llama_seq_id dst, llama_pos p0, llama_pos p1) override { cache_.seq_cp(src, dst, p0, p1); }
    void seq_keep(llama_seq_id seq) override { cache_.seq_keep(seq); }
    // The stock versions mark a pending K-shift, which aborts the process under M-RoPE. Positions change through
    // relocate() alone, so these do nothing rather than that.
    void seq_add(llama_seq_id, llama_pos, llama_pos, llama_pos) override {}
    void seq_div(llama_seq_id, llama_pos, llama_pos, int) override {}
    llama_pos seq_pos_min(llama_seq_id seq) const override { return cache_.seq_pos_min(seq); }
    llama_pos seq_pos_max(llama_seq_id seq) const override { return cache_.seq_pos_max(seq); }
    std::map<ggml_backend_buffer_type_t, size_t> memory_breakdown() const override { return cache_.memory_breakdown(); }
    void state_write(llama_io_write_i & io, llama_seq_id seq, llama_state_seq_flags flags) const override {
        cache_.state_write(io, seq, flags);
    }
    void state_read(llama_io_read_i & io, llama_seq_id seq, llama_state_seq_flags flags) override { cache_.state_read(io, seq, flags); }

    bool relocate(llama_context & context, const std::vector<Row> & rows, const std::vector<uint32_t> & freed);
    bool try_shift(llama_context & context, const Row & row);

private:
    void move_cells(const std::vector<Row> & rows, const std::vector<uint32_t> & freed);

    llama_memory_ptr inner_;
    llama_kv_cache & cache_;
    OriginalKeys original_keys_;
    CacheHandle * handle_;
    std::vector<uint32_t> next_cells_;
    Relocator relocator_;
};

namespace {

std::string type_name(const llama_memory_i & memory) {
    int status = 0;
    char * demangled = abi::__cxa_demangle(typeid(memory).name(), nullptr, nullptr, &status);
    std::string name = status == 0 && demangled ? demangled : typeid(memory).name();
    std::free(demangled);
    return name;
}

// A word a user may have met for the memories that llama.cpp has besides the plain cache.
std::string describe(const llama_memory_i & memory) {
    const std::string name = type_name(memory);
    if (name.find("iswa") != std::string::npos) return "a sliding-window KV cache (" + name + ")";
    if (name.find("hybrid") != std::string::npos) return "a hybrid of attention and recurrent state (" + name + ")";
    if (name.find("recurrent") != std::string::npos) return "recurrent state (" + name + ")";
    return "a special KV cache (" + name + ")";
}

// Why this cache can't be taken over; empty when it can.
std::string refusal(llama_context & context, llama_memory_i * memory) {
    if (!memory) return "the model has no KV cache";
    auto * cache = dynamic_cast<llama_kv_cache *>(memory);
    if (!cache) return "the model's memory is " + describe(*memory) + ", not a plain KV cache";
    const llama_hparams & hparams = context.get_model().hparams;
    if (cache->get_n_stream() != 1) return "the context has more than one stream";
    if (hparams.is_mla()) return "the model uses multi-head latent attention (MLA)";
    if (access::shares_another(*cache)) return "the context shares another context's cache";
    if (context.get_cparams().yarn_ext_factor != 0.0f) return "the context extends its window with YaRN";
    // Step3.5 has rotary dimensions that differ by layer; a shift over one number of them would be wrong.
    if (context.get_model().arch == LLM_ARCH_STEP35) return "the model's rotary dimensions differ by layer";
    return "";
}

}  // namespace

llama_memory_context_ptr TideMemory::init_batch(llama_batch_allocr & balloc, uint32_t n_ubatch, bool embd_all) {
    // Without a placement (llama.cpp's own warm-up and reserve runs) the cache looks for itself.
    if (next_cells_.empty()) return cache_.init_batch(balloc, n_ubatch, embd_all);
    const std::vector<uint32_t> cells = std::exchange(next_cells_, {});
    const auto refuse = [] { return std::make_unique<llama_kv_cache_context>(LLAMA_MEMORY_STATUS_FAILED_PREPARE); };

    balloc.split_reset();
    std::vector<llama_ubatch> ubatches;
    llama_kv_cache::slot_info_vec_t slots;
    size_t next = 0;
    for (;;) {
        llama_ubatch ubatch = balloc.split_simple(n_ubatch);
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
    std::vector<bool> taken(cache_.get_size());
    for (const uint32_t cell : cells) {
        if (cell >= taken.size() || taken[cell] || !this->cells().is_empty(cell)) return refuse();
        taken[cell] = true;
    }
    return std::make_unique<llama_kv_cache_context>(&cache_, std::move(slots), std::move(ubatches));
}

bool TideMemory::relocate(llama_context & context, const std::vector<Row> & rows, const std::vector<uint32_t> & freed) {
    for (const uint32_t cell : freed) original_keys_.release(cell);
    if (!relocator_.run(context, cache_, original_keys_, rows)) return false;
    move_cells(rows, freed);
    return true;
}

// On a room for originals of its own: the session's, as large as all keys, is not made before it is needed.
bool TideMemory::try_shift(llama_context & context, const Row & row) {
    OriginalKeys original{cache_, 1};
    return Relocator{}.run(context, cache_, original, {row});
}

// Writes all cells anew: most of them change, and llama.cpp keeps two ordered sets of them, in which building costs less
// than moving one by one. Never cells.pos_add: it marks a pending K-shift.
void TideMemory::move_cells(const std::vector<Row> & rows, const std::vector<uint32_t> & freed) {
    struct Saved {
        llama_pos position;
        uint32_t cell;
        llama_kv_cell_ext ext;
    };
    const llama_kv_cells & old = cells();
    std::vector<bool> leaves(old.size(), false);
    for (const uint32_t cell : freed) leaves[cell] = true;
    std::vector<const Row *> row_of(old.size(), nullptr);
    for (const Row & row : rows) row_of[row.src] = &row;
    std::vector<Saved> saved;
    saved.reserve(old.get_used());
    for (uint32_t cell = 0; cell < old.size(); ++cell) {
        if (old.is_empty(cell) || leaves[cell]) continue;
        Saved entry{old.pos_get(cell), cell, old.ext_get(cell)};
        if (const Row * row = row_of[cell]) {
            entry.position += row->delta;
            entry.cell = row->dst;
            entry.ext.x += row->delta;
            entry.ext.y += row->delta;
        }
        saved.push_back(entry);
    }

    llama_kv_cells fresh;
    fresh.resize(old.size());
    for (const Saved & entry : saved) {
        fresh.pos_set(entry.cell, entry.position);
        fresh.ext_set(entry.cell, entry.ext);
        fresh.seq_add(entry.cell, 0);
    }
    mutable_cells() = std::move(fresh);
}

void TideMemory::restore(const SavedRows & rows, const std::vector<PlacedCell> & places) {
    cache_.clear(true);
    original_keys_.clear();
    std::vector<uint32_t> cells;
    cells.reserve(places.size());
    for (const PlacedCell & place : places) cells.push_back(place.cell);
    rows.load(cache_, original_keys_, cells);
    for (const PlacedCell & place : places) {
        mutable_cells().pos_set(place.cell, place.t);
        mutable_cells().ext_set(place.cell, {place.x, place.y, LLAMA_TOKEN_NULL});
        mutable_cells().seq_add(place.cell, 0);
    }
}

namespace {

std::vector<float> as_floats(ggml_type type, const std::vector<uint8_t> & raw) {
    std::vector<float> row(raw.size() / ggml_type_size(type) * static_cast<size_t>(ggml_blck_size(type)));
    if (type == GGML_TYPE_F32) {
        std::memcpy(row.data(), raw.data(), raw.size());
    } else {
        ggml_get_type_traits(type)->to_float(raw.data(), row.data(), static_cast<int64_t>(row.size()));
    }
    return row;
}

std::vector<float> row_as_floats(const ggml_tensor * rows, uint32_t cell) {
    std::vector<uint8_t> raw(ggml_row_size(rows->type, rows->ne[0]));
    ggml_backend_tensor_get(rows, raw.data(), cell * raw.size(), raw.size());
    return as_floats(rows->type, raw);
}

}  // namespace

std::unique_ptr<CacheHandle> CacheHandle::attach(llama_context & context, std::string & reason) {
    llama_memory_ptr & memory = access::memory_of(context);
    reason = refusal(context, memory.get());
    if (!reason.empty()) return nullptr;
    auto & cache = static_cast<llama_kv_cache &>(*memory);
    std::unique_ptr<CacheHandle> handle{new CacheHandle(context)};

    // Canary: our view of the object must say what the public API says, before anything relies on it.
    if (cache.get_size() < llama_n_ctx(&context) || cache.get_cells(0).get_used() != 0 || llama_memory_seq_pos_max(memory.get(), 0) != -1) {
        reason = cache.get_cells(0).get_used() != 0 ? "the context is not empty" : "llama.cpp's cache is laid out differently than expected";
        return nullptr;
    }

    auto decorated = std::make_unique<TideMemory>(std::move(memory), cache, *handle);
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

uint32_t CacheHandle::n_cells() const { return memory_ ? memory_->cache().get_size() : 0; }
bool CacheHandle::is_empty(uint32_t cell) const { return !memory_ || memory_->cells().is_empty(cell); }
int32_t CacheHandle::position(uint32_t cell) const { return is_empty(cell) ? -1 : memory_->cells().pos_get(cell); }
bool CacheHandle::transposed_values() const { return memory_ && access::is_v_transposed(memory_->cache()); }

uint64_t CacheHandle::bytes_per_cell() const {
    if (!memory_) return 0;
    uint64_t total = 0;
    for (const auto & [type, bytes] : memory_->memory_breakdown()) total += bytes;
    return total / n_cells();
}

uint64_t CacheHandle::bytes_allocated() const {
    return memory_ ? bytes_per_cell() * n_cells() + memory_->original_keys().bytes() : 0;
}

void CacheHandle::place_next(std::vector<uint32_t> cells) {
    if (memory_) memory_->place_next(std::move(cells));
}

void CacheHandle::remove(const std::vector<uint32_t> & cells) {
    if (!memory_) return;
    for (const uint32_t cell : cells) memory_->remove(cell);
}

void CacheHandle::hide(const std::vector<uint32_t> & cells) {
    if (!memory_) return;
    for (const uint32_t cell : cells) {
        if (!memory_->cells().is_empty(cell)) memory_->mutable_cells().rm(cell);
    }
}

bool CacheHandle::relocate(const std::vector<Row> & rows, const std::vector<uint32_t> & freed) {
    if (rows.empty()) {
        remove(freed);
        return true;
    }
    return memory_ && memory_->relocate(context_, rows, freed);
}

bool CacheHandle::try_shift(const Row & row) { return memory_ && memory_->try_shift(context_, row); }

void CacheHandle::occupy(uint32_t cell, int32_t t, int32_t y, int32_t x) {
    if (!memory_) return;
    llama_kv_cells & cells = memory_->mutable_cells();
    llama_kv_cell_ext ext;
    ext.x = x;
    ext.y = y;
    cells.pos_set(cell, t);
    cells.ext_set(cell, ext);
    cells.seq_add(cell, 0);
}

void CacheHandle::fill_random(uint32_t seed) {
    if (!memory_) return;
    context_.synchronize();
    fill_rows(memory_->cache(), seed);
}

void CacheHandle::write(const std::vector<uint32_t> & cells, ByteWriter & out) const {
    if (!memory_) return;
    context_.synchronize();
    write_rows(context_, memory_->cache(), memory_->original_keys(), cells, out);
}

SavedRows CacheHandle::parse(uint32_t n_rows, ByteReader & in) const {
    if (!memory_) throw StateError{"there is no cache to fill"};
    return SavedRows::parse(context_, memory_->cache(), n_rows, in);
}

void CacheHandle::restore(const SavedRows & rows, const std::vector<PlacedCell> & cells) {
    if (!memory_) return;
    context_.synchronize();
    memory_->restore(rows, cells);
}

llama_kv_cache & CacheHandle::inner() const { return memory_->cache(); }
const OriginalKeys & CacheHandle::original_keys() const { return memory_->original_keys(); }
void CacheHandle::synchronize() const { context_.synchronize(); }

size_t CacheHandle::key_width(uint32_t layer) const {
    if (!memory_) return 0;
    for (const uint32_t il : memory_->cache().get_layer_ids()) {
        if (il == layer) return static_cast<size_t>(memory_->cache().get_k_storage(static_cast<int32_t>(layer))->ne[0]);
    }
    return 0;
}

std::vector<uint32_t> CacheHandle::layers() const { return memory_ ? memory_->cache().get_layer_ids() : std::vector<uint32_t>{}; }
ggml_type CacheHandle::key_type(uint32_t layer) const { return memory_->cache().get_k_storage(static_cast<int32_t>(layer))->type; }

std::vector<float> CacheHandle::key_row(uint32_t layer, uint32_t cell) const {
    if (key_width(layer) == 0 || cell >= n_cells()) return {};
    context_.synchronize();
    return row_as_floats(memory_->cache().get_k_storage(static_cast<int32_t>(layer)), cell);
}

size_t CacheHandle::value_width(uint32_t layer) const {
    return key_width(layer) == 0 ? 0 : static_cast<size_t>(value_storage(memory_->cache(), layer)->ne[0]);
}

std::vector<float> CacheHandle::value_row(uint32_t layer, uint32_t cell) const {
    const size_t width = value_width(layer);
    if (width == 0 || cell >= n_cells()) return {};
    context_.synchronize();
    const ggml_tensor * values = value_storage(memory_->cache(), layer);
    if (!transposed_values()) return row_as_floats(values, cell);
    const size_t element = ggml_type_size(values->type);
    std::vector<uint8_t> raw(width * element);
    for (size_t j = 0; j < width; ++j) ggml_backend_tensor_get(values, raw.data() + j * element, (j * n_cells() + cell) * element, element);
    return as_floats(values->type, raw);
}

}  // namespace ot
