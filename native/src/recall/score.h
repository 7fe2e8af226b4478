// How much of a question's attention each archived unit would get: the share of the softmax mass over all indexed keys.
//
// ReKV (arXiv 2503.00540) compares mean keys with the mean query by their cosine; that finds little in a model whose keys
// have large common parts. What attention itself does finds more: a unit's score is the sum, over its keys, of
// softmax(q k / sqrt(d)) across the keys of all units, averaged over the question's tokens, layers and heads. Rotation is
// taken out of keys and queries alike, so that neither age nor place counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ot {

// What a question asks for. Heads of a layer read the keys of the group that they belong to: head h those of key head
// h / (heads / key_heads).
struct Queries {
    uint32_t layers = 0;
    uint32_t tokens = 0;
    uint32_t heads = 0;
    uint32_t key_heads = 0;
    uint32_t head = 0;    // dimensions
    float scale = 0;      // of q k; 1 / sqrt(d) in most models
    std::vector<float> values;  // [layer][token][head][dimension], without rotation

    uint32_t width() const { return key_heads * head; }  // of a layer's key
};

// A unit's part of the index: n_keys times [layer][width] as f16.
struct IndexedKeys {
    const uint16_t * keys;
    uint32_t n_keys;
};

// One share a unit; together 1, or all 0 when there are no keys or no queries.
std::vector<float> masses(const std::vector<IndexedKeys> & units, const Queries & queries);

// Shares, each times what it is of the share that a question about nothing in particular gives the unit; together 1, or all 0.
// Some units draw attention whatever is asked, the more of them the longer the stream: what counts is what this question adds.
std::vector<float> against(const std::vector<float> & shares, const std::vector<float> & reference);

// How alike units are: the cosine of their mean keys, each less the mean of all units' mean keys.
class Likeness {
public:
    Likeness(const std::vector<IndexedKeys> & units, size_t key_size);
    float operator()(size_t a, size_t b) const;

private:
    size_t size_;
    std::vector<float> means_;  // [unit][size], of length 1
};

}  // namespace ot
