// The running state of a hybrid model's recurrent layers. It takes up every token and lets go of none: what a unit did to it
// can only be undone by bringing back what was there before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

struct llama_context;
class llama_memory_recurrent;

namespace ot {

class RecurrentState {
public:
    RecurrentState(llama_context & context, llama_memory_recurrent & memory) : context_(context), memory_(memory) {}

    // All of it as bytes, in the format of the memory itself (llama_state_seq_get_data with PARTIAL_ONLY would add the rows of
    // layers that see a window). Bit by bit the same after bring_back().
    void copy(std::vector<uint8_t> & to) const;
    // false: they are not such a state of this model, and what there is now is unknown.
    bool bring_back(const uint8_t * bytes, size_t n);

    int32_t position() const;  // of the newest token; -1: there is none
    // The state counts on from there: llama.cpp holds the next batch's positions against it.
    void set_position(int32_t position);

    uint64_t bytes() const;

private:
    llama_context & context_;
    llama_memory_recurrent & memory_;
};

}  // namespace ot
