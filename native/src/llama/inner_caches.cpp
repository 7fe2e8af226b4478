#include "llama/inner_caches.h"

#include "llama/access.h"
#include "llama-batch.h"
#include "llama-kv-cache-iswa.h"
#include "llama-memory-hybrid-iswa.h"
#include "llama-memory-hybrid.h"
#include "llama-model.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <typeinfo>
#include <utility>

namespace ot {
namespace {

// This very class: llama.cpp derives others from some of these, whose graphs need more than is known here.
template <typename Memory>
Memory * exactly(llama_memory_i & memory) {
    return typeid(memory) == typeid(Memory) ? static_cast<Memory *>(&memory) : nullptr;
}

std::string type_name(const llama_memory_i & memory) {
    int status = 0;
    char * demangled = abi::__cxa_demangle(typeid(memory).name(), nullptr, nullptr, &status);
    std::string name = status == 0 && demangled ? demangled : typeid(memory).name();
    std::free(demangled);
    return name;
}

// A word a user may have met for the memories that can't be taken over.
std::string describe(const llama_memory_i & memory) {
    const std::string name = type_name(memory);
    if (name.find("hybrid") != std::string::npos) return "a hybrid with an index of its own (" + name + ")";
    if (name.find("recurrent") != std::string::npos) return "recurrent state (" + name + ")";
    return "a special KV cache (" + name + ")";
}

}  // namespace

InnerCaches::InnerCaches(llama_memory_i & memory) {
    if (auto * cache = exactly<llama_kv_cache>(memory)) {
        caches_ = {cache};
    } else if ((window_ = exactly<llama_kv_cache_iswa>(memory))) {
        caches_ = {window_->get_base(), window_->get_swa()};
    } else if ((hybrid_ = exactly<llama_memory_hybrid>(memory))) {
        caches_ = {hybrid_->get_mem_attn()};
        recurrent_ = hybrid_->get_mem_recr();
    } else if ((hybrid_window_ = exactly<llama_memory_hybrid_iswa>(memory))) {
        caches_ = {hybrid_window_->get_mem_attn()->get_base(), hybrid_window_->get_mem_attn()->get_swa()};
        recurrent_ = hybrid_window_->get_mem_recr();
    }
}

// Recurrent layers want sequences of equal length, which one sequence is either way, and assert that it is told so.
llama_ubatch InnerCaches::split(llama_batch_allocr & batch, uint32_t n_ubatch) const {
    return recurrent_ ? batch.split_equal(n_ubatch, false, 0) : batch.split_simple(n_ubatch);
}

llama_memory_context_ptr InnerCaches::place(llama_kv_cache::slot_info_vec_t slots, std::vector<llama_ubatch> ubatches) const {
    if (recurrent_ && !recurrent_->prepare(ubatches)) return std::make_unique<llama_kv_cache_context>(LLAMA_MEMORY_STATUS_FAILED_PREPARE);
    if (window_) return std::make_unique<llama_kv_cache_iswa_context>(window_, slots, slots, std::move(ubatches));
    if (hybrid_) return std::make_unique<llama_memory_hybrid_context>(hybrid_, std::move(slots), std::move(ubatches));
    if (hybrid_window_) return std::make_unique<llama_memory_hybrid_iswa_context>(hybrid_window_, slots, slots, std::move(ubatches));
    return std::make_unique<llama_kv_cache_context>(caches_.front(), std::move(slots), std::move(ubatches));
}

std::string why_not(llama_context & context, llama_memory_i * memory) {
    if (!memory) return "the model has no KV cache";
    const InnerCaches inner{*memory};
    if (inner.caches().empty()) return "the model's memory is " + describe(*memory) + ", not a KV cache of a known kind";
    if (context.get_model().hparams.is_mla()) return "the model uses multi-head latent attention (MLA)";
    for (llama_kv_cache * cache : inner.caches()) {
        if (cache->get_n_stream() != 1) return "the context has more than one stream";
        if (access::shares_another(*cache)) return "the context shares another context's cache";
        if (cache->get_size() != inner.caches().front()->get_size()) {
            return "the cache of the layers that see a window is smaller than the other (create the context with swa_full)";
        }
    }
    if (inner.recurrent() && inner.recurrent()->n_rs_seq != 0) return "the context keeps earlier recurrent states (create it with n_rs_seq 0)";
    if (context.get_cparams().yarn_ext_factor != 0.0f) return "the context extends its window with YaRN";
    // Step3.5 has rotary dimensions that differ by layer; a shift over one number of them would be wrong.
    if (context.get_model().arch == LLM_ARCH_STEP35) return "the model's rotary dimensions differ by layer";
    return "";
}

}  // namespace ot
