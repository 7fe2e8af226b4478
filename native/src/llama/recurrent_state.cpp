#include "llama/recurrent_state.h"

#include "llama-context.h"
#include "llama-memory-recurrent.h"

#include <llama.h>

namespace ot {

// `PARTIAL_ONLY` leaves out what can be removed by position: of a hybrid, the attention layers' part.
void RecurrentState::copy(std::vector<uint8_t> & to) const {
    context_.synchronize();
    to.resize(llama_state_seq_get_size_ext(&context_, 0, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY));
    to.resize(llama_state_seq_get_data_ext(&context_, to.data(), to.size(), 0, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY));
}

bool RecurrentState::bring_back(const uint8_t * bytes, size_t n) {
    context_.synchronize();
    return n > 0 && llama_state_seq_set_data_ext(&context_, bytes, n, 0, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY) == n;
}

int32_t RecurrentState::position() const { return memory_.seq_pos_max(0); }

void RecurrentState::set_position(int32_t position) {
    for (llama_memory_recurrent::mem_cell & cell : memory_.cells) {
        if (cell.has_seq_id(0)) cell.pos = position;
    }
}

uint64_t RecurrentState::bytes() const {
    uint64_t total = 0;
    for (const auto & [type, bytes] : memory_.memory_breakdown()) total += bytes;
    return total;
}

}  // namespace ot
