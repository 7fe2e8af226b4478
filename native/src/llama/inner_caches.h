// The kinds of memory that can be taken over, and what differs between them: which caches they consist of, how a batch is cut
// for them, and the class by which their graphs know where tokens go.
#pragma once

#include "llama-kv-cache.h"

#include <string>
#include <vector>

struct llama_context;
class llama_kv_cache_iswa;
class llama_memory_hybrid;
class llama_memory_hybrid_iswa;
class llama_memory_recurrent;

namespace ot {

class InnerCaches {
public:
    // Looks into the memory, which must outlive this object. Has no caches where it is of another kind.
    explicit InnerCaches(llama_memory_i & memory);

    // Those that hold tokens' keys and values: one, or two where some layers see a window.
    const std::vector<llama_kv_cache *> & caches() const { return caches_; }
    // The layers' running state beside them; null where all layers attend.
    llama_memory_recurrent * recurrent() const { return recurrent_; }

    // The next part of a batch.
    llama_ubatch split(llama_batch_allocr & batch, uint32_t n_ubatch) const;
    // Where the parts' tokens go, in each cache. A failed one where the recurrent state can't take them.
    llama_memory_context_ptr place(llama_kv_cache::slot_info_vec_t slots, std::vector<llama_ubatch> ubatches) const;

private:
    llama_kv_cache_iswa * window_ = nullptr;
    llama_memory_hybrid * hybrid_ = nullptr;
    llama_memory_hybrid_iswa * hybrid_window_ = nullptr;
    llama_memory_recurrent * recurrent_ = nullptr;
    std::vector<llama_kv_cache *> caches_;
};

// Why a context's memory can't be taken over; empty when it can.
std::string why_not(llama_context & context, llama_memory_i * memory);

}  // namespace ot
