// What attention costs and whom it reads, told by the graph's own nodes through llama.cpp's evaluation callback.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

struct ggml_tensor;
struct llama_context;

namespace ot {

// Whether the context computes attention without showing its weights: what was asked for, or llama.cpp's choice, which may
// differ from how values are stored.
bool uses_flash_attention(const llama_context & context);

// Watches the graphs of one context while it is told to. Otherwise no callback is set, and llama.cpp computes as ever.
//
// Sums are those of the softmax nodes' columns, which flash attention doesn't have: how much of the attention of all queries,
// heads and layers each cell has received. A graph of n queries adds n x heads x layers in all.
//
// Time runs, layer by layer, from the look at keys or queries that stands right before their product (a view: no work) to
// attention's output: product, mask and softmax, weighted values, or the one flash attention node. Before and after it the
// backend is synchronised; what lies between runs as one.
class AttentionProbe {
public:
    explicit AttentionProbe(llama_context & context) : context_(context) {}
    ~AttentionProbe() { watch(false, false); }
    AttentionProbe(const AttentionProbe &) = delete;
    AttentionProbe & operator=(const AttentionProbe &) = delete;

    void watch(bool time, bool sums);

    // Milliseconds that attention has taken over all layers, reading its sums included, since this was last asked.
    double take_ms();
    // By cell, what attention has added up to since this was last asked; cells behind the last one's have received none.
    std::vector<double> take_sums();

private:
    static bool on_node(ggml_tensor * node, bool ask, void * self);
    bool wants(const ggml_tensor & node);
    void computed(const ggml_tensor & node);
    void add_sums(const ggml_tensor & node);

    // Between layers; the clock runs, but no product has been seen; in attention.
    enum class Stage { Outside, Ready, Inside };

    llama_context & context_;
    bool time_ = false;
    bool sums_wanted_ = false;
    Stage stage_ = Stage::Outside;
    std::chrono::steady_clock::time_point begin_;
    double ms_ = 0;
    std::vector<double> sums_;
    std::vector<float> copied_;  // of a node that lies elsewhere than in the host's memory
};

}  // namespace ot
