// A question's queries, taken out of the graph that computes them.
#pragma once

#include "llama/rotation.h"

#include <cstdint>
#include <map>
#include <vector>

struct ggml_tensor;
struct llama_context;

namespace ot {

// What attention multiplies q k by, with heads of so many dimensions.
float attention_scale(const llama_context & context, uint32_t head);

// While it lives, every graph of the context ends once the last of `layers` has its queries: what is decoded meanwhile has no
// logits and must be taken back. Another evaluation callback is put aside and comes back with this object's end.
class QueryProbe {
public:
    QueryProbe(llama_context & context, const std::vector<uint32_t> & layers);
    ~QueryProbe();
    QueryProbe(const QueryProbe &) = delete;
    QueryProbe & operator=(const QueryProbe &) = delete;

    // [layer][token][head][dimension] in the order of `layers`, rotation taken out; `places` of all tokens that were decoded.
    // Empty where the graph shows no queries of a layer under the name that llama.cpp's models give them.
    std::vector<float> take(const std::vector<RotaryPlace> & places) const;
    uint32_t n_heads(uint32_t layer) const;

private:
    static bool on_node(ggml_tensor * node, bool ask, void * self);
    bool wants(const ggml_tensor & node) const;
    void read(const ggml_tensor & node);
    void set_callback(bool (*callback)(ggml_tensor *, bool, void *), void * data);

    llama_context & context_;
    std::vector<uint32_t> layers_;
    uint32_t last_ = 0;
    std::map<uint32_t, std::vector<float>> queries_;  // by layer
    bool (*before_)(ggml_tensor *, bool, void *);
    void * before_data_;
};

}  // namespace ot
