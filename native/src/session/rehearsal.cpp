// A question whose answer is foreseen and taken back: history, cells, and what comes next are as if it had never been asked.
#include "session/session.h"

#include "omnitide.h"

#include <algorithm>
#include <utility>

namespace ot {

std::string Session::foresee(float * logits, uint32_t most) {
    PendingUnit unit = finished_unit();
    if (!cache_ && (llama_model_is_recurrent(&model_) || llama_model_is_hybrid(&model_))) {
        throw Failure{OT_ERR_UNSUPPORTED, "llama.cpp's own memory can't take back what recurrent layers have read"};
    }
    if (history_.free_cells() < unit.size()) {  // nothing is evicted for what won't stay
        throw Failure{OT_ERR_NO_ROOM, "a rehearsal of " + std::to_string(unit.size()) + " tokens has no room: only " +
                                          std::to_string(history_.free_cells()) + " of " + std::to_string(n_cells()) + " cells are free"};
    }
    History scratch = history_;
    scratch.lay_out(unit.spans);
    const std::vector<TokenPosition> positions = token_positions(unit.spans, mrope());
    std::vector<Cell> cells = scratch.place(unit.size());
    {
        const Abortable scope{abortable_};
        decode(unit, positions, cells, true);
    }
    std::copy_n(this->logits(), n_vocab(), logits);
    std::string said;
    try {
        if (most > 0) {
            scratch.append(unit.kind, std::move(unit.spans), cells, unit.start_s, unit.end_s);
            said = foresee_answer(scratch, cells, most);
        }
    } catch (...) {
        logits_ready_ = false;
        take_back(cells, positions.front().t);
        throw;
    }
    logits_ready_ = false;  // no answer follows what was taken back
    take_back(cells, positions.front().t);
    return said;
}

// The likeliest answer; the cells that it takes are added to `cells`, to be taken back as one.
std::string Session::foresee_answer(History & scratch, std::vector<Cell> & cells, uint32_t most) {
    const Abortable scope{abortable_};
    std::string said;
    for (uint32_t count = 0; count < most; ++count) {
        const float * scores = llama_get_logits_ith(&context_, -1);
        const llama_token token = static_cast<llama_token>(std::max_element(scores, scores + n_vocab()) - scores);
        if (llama_vocab_is_eog(&vocab_, token)) break;
        said += piece_of(token);
        if (count + 1 == most || scratch.free_cells() == 0) break;

        PendingUnit next;
        next.add_tokens(Role::Response, &token, 1);
        const Position at = scratch.lay_out(next.spans);
        if (n_learned_positions_ > 0 && at > static_cast<Position>(n_learned_positions_)) break;  // where llama.cpp aborts
        const std::vector<TokenPosition> positions = token_positions(next.spans, mrope());
        const std::vector<Cell> cell = scratch.place(1);
        cells.push_back(cell.front());
        if (interrupted_.load(std::memory_order_relaxed)) throw Failure{OT_ERR_INTERRUPTED, "interrupted"};
        decode_run(next, positions, cell, DecodeRun{0, 1, false, false, 0}, true);
        scratch.append(UnitKind::Response, std::move(next.spans), cell, 0, 0);
    }
    return said;
}

}  // namespace ot
