// Relocation: position shift and migration of cached rows, fused into one graph over all layers.
#pragma once

#include "row.h"

#include <cstdint>
#include <memory>
#include <vector>

struct ggml_tensor;
struct llama_context;
class llama_kv_cache;

namespace ot {

class OriginalKeys;

// The whole tensor behind the cache's view of a layer's values.
ggml_tensor * value_storage(llama_kv_cache & cache, uint32_t layer);

// Runs relocations of one context's cache.
//
// Its graphs have a scheduler of their own, over the context's backends. The context's scheduler holds the graph that
// llama.cpp reuses from one decode to the next; borrowing it means dropping that graph and reserving the largest one anew,
// which cost more than a sixth of a round.
class Relocator {
public:
    Relocator();
    ~Relocator();

    // Gathers every row that moves or shifts, then scatters: rows may overlap in any way. Sources are distinct, and so
    // are destinations; a destination is either free or itself a source. Keys, values and what is known of original keys
    // change; the cells are the caller's. false: nothing is promised about the rows.
    bool run(llama_context & context, llama_kv_cache & cache, OriginalKeys & original_keys, const std::vector<Row> & rows);

private:
    struct Scheduler;
    std::unique_ptr<Scheduler> scheduler_;  // made at the first relocation
    bool general_;                          // rows in this process's memory, too, by the graph that runs anywhere
};

}  // namespace ot
