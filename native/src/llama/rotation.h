// Rotary positions taken out of keys and queries, so that only what a token says is left.
#pragma once

#include <cstdint>
#include <vector>

struct llama_context;

namespace ot {

// A token's place as its keys were rotated by it; plain rotation reads t alone.
struct RotaryPlace {
    int32_t t, y, x;
};

// The rotation of one layer.
class Rotation {
public:
    // Whether a layer has any that can be taken out.
    static bool is_known(const llama_context & context, uint32_t layer);

    // REQUIRES: is_known().
    Rotation(const llama_context & context, uint32_t layer);

    uint32_t head() const { return head_; }  // dimensions
    // Turns `n_heads` heads of a token back, in place.
    void undo(float * heads, uint32_t n_heads, const RotaryPlace & place) const;

private:
    uint32_t head_;
    bool adjacent_;                    // pairs are neighbours; else halves of what is rotated
    std::vector<double> frequencies_;  // of each pair
    std::vector<uint8_t> axes_;        // of each pair: 0 t, 1 y, 2 x, 3 none
};

// Turns blocks of 2^k numbers by a Hadamard matrix, as llama.cpp stores some quantised keys: its own inverse.
void turn_hadamard(float * values, uint32_t n, uint32_t block);

}  // namespace ot
