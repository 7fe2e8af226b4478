// Names private members of llama.cpp's classes without touching its headers: an explicit template instantiation may name
// any member (the standard exempts it from access checks, [temp.spec]/6), and the friend it defines hands it out.
#pragma once

#include "llama-context.h"
#include "llama-kv-cache.h"

namespace ot::access {

template <typename Tag, typename Tag::type Member>
struct Key {
    friend typename Tag::type member(Tag) { return Member; }
};

struct ContextMemory {
    using type = llama_memory_ptr llama_context::*;
    friend type member(ContextMemory);
};
template struct Key<ContextMemory, &llama_context::memory>;

struct CacheOther {
    using type = llama_kv_cache * llama_kv_cache::*;
    friend type member(CacheOther);
};
template struct Key<CacheOther, &llama_kv_cache::other>;

struct CacheTransposed {
    using type = bool llama_kv_cache::*;
    friend type member(CacheTransposed);
};
template struct Key<CacheTransposed, &llama_kv_cache::v_trans>;

inline llama_memory_ptr & memory_of(llama_context & context) { return context.*member(ContextMemory{}); }
inline bool shares_another(llama_kv_cache & cache) { return cache.*member(CacheOther{}) != nullptr; }
inline bool is_v_transposed(llama_kv_cache & cache) { return cache.*member(CacheTransposed{}); }

}  // namespace ot::access
