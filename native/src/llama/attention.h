// What attention costs and whom it reads, told by the graph's own nodes through llama.cpp's evaluation callback.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

struct ggml_tensor;
struct llama_context;

namespace ot {

// Watches the graphs of one context while it is told to. Otherwise no callback is set, and llama.cpp computes as ever.
//
// Time runs, layer by layer, from the look at keys or queries that stands right before their product (a view: no work) to
// attention's output: product, mask and softmax, weighted values, or the one flash attention node. Before and after it the
// backend is synchronised; what lies between runs as one.
class AttentionProbe {
public:
    explicit AttentionProbe(llama_context & context) : context_(context) {}
    ~AttentionProbe() { stop(); }
    AttentionProbe(const AttentionProbe &) = delete;
    AttentionProbe & operator=(const AttentionProbe &) = delete;

    void start();  // from 0 on
    void stop();

    // Milliseconds that attention has taken, over all layers, since it was started.
    double ms() const { return ms_; }

private:
    static bool on_node(ggml_tensor * node, bool ask, void * self);
    bool wants(const ggml_tensor & node);
    void computed(const ggml_tensor & node);
    void set_callback(bool on);

    // Between layers; the clock runs, but no product has been seen; in attention.
    enum class Stage { Outside, Ready, Inside };

    llama_context & context_;
    bool on_ = false;
    Stage stage_ = Stage::Outside;
    std::chrono::steady_clock::time_point begin_;
    double ms_ = 0;
};

}  // namespace ot
