// The answer token by token: sampled, decoded, laid into the history as one unit that grows.

#include "omnitide.h"
#include "session/session.h"

#include <algorithm>
#include <utility>

namespace ot {

void Session::generate_begin(double at_s) {
    require_usable();
    if (pending_ || answer_) throw Failure{OT_ERR_ARGUMENT, "another unit has been begun"};
    if (!logits_ready_) throw Failure{OT_ERR_ARGUMENT, "no question has been asked"};
    start_sampler();
    answer_.emplace();
    answer_->at_s = at_s;
}

// Each answer draws numbers of its own, the same ones whenever the same session is run, or resumed.
void Session::start_sampler() {
    sampler_.reset(llama_sampler_chain_init(llama_sampler_chain_default_params()));
    if (temperature_ <= 0.0f) {
        llama_sampler_chain_add(sampler_.get(), llama_sampler_init_greedy());
        return;
    }
    uint32_t seed = seed_ + static_cast<uint32_t>(history_.ledger().next_id());
    if (seed == LLAMA_DEFAULT_SEED) seed = 0;  // which llama.cpp takes for none
    llama_sampler_chain_add(sampler_.get(), llama_sampler_init_temp(temperature_));
    llama_sampler_chain_add(sampler_.get(), llama_sampler_init_dist(seed));
}

Generated Session::generate_next() {
    require_usable();
    if (!answer_ || !logits_ready_) throw Failure{OT_ERR_ARGUMENT, "no answer is being generated"};
    Generated out;
    const llama_token token = llama_sampler_sample(sampler_.get(), &context_, -1);
    if (llama_vocab_is_eog(&vocab_, token)) return out;

    append_tokens(Role::Response, {token}, true);
    out.token = token;
    out.piece = piece_of(token);
    return out;
}

std::string Session::piece_of(llama_token token) const {
    if (llama_vocab_type(&vocab_) == LLAMA_VOCAB_TYPE_NONE) return {};  // which llama.cpp aborts at
    std::string piece(64, '\0');
    const auto write = [&] { return llama_token_to_piece(&vocab_, token, piece.data(), static_cast<int32_t>(piece.size()), 0, false); };
    int32_t length = write();
    if (length < 0) {  // the length that it needs
        piece.resize(static_cast<size_t>(-length));
        length = write();
    }
    piece.resize(static_cast<size_t>(std::max(length, 0)));
    return piece;
}

uint64_t Session::generate_end(const int32_t * closing, size_t n) {
    if (!answer_) throw Failure{OT_ERR_ARGUMENT, "no answer is being generated"};
    // Whatever happens to its closing tokens, and whatever has happened before, the answer is over.
    struct Over {
        Session & session;
        ~Over() {
            session.answer_.reset();
            session.logits_ready_ = false;
        }
    } over{*this};
    require_usable();
    if (n > 0) append_tokens(Role::Boundary, {closing, closing + n}, false);
    return history_.ledger().units().empty() ? 0 : history_.ledger().units().back().id;
}

void Session::append_tokens(Role role, const std::vector<int32_t> & tokens, bool want_logits) {
    const uint32_t n = static_cast<uint32_t>(tokens.size());
    make_room(n);  // retention in the middle of an answer, if it must be
    PendingUnit piece;
    piece.add_tokens(role, tokens.data(), tokens.size());
    history_.lay_out(piece.spans);
    const std::vector<TokenPosition> positions = token_positions(piece.spans, mrope());
    std::vector<Cell> cells = history_.place(n);
    decode(piece, positions, cells, want_logits);

    broken_ = true;  // if the ledger can't take what the cache has
    const auto & units = history_.ledger().units();
    if (!answer_->started) {
        history_.append(UnitKind::Response, std::move(piece.spans), std::move(cells), answer_->at_s, answer_->at_s);
        answer_->started = true;
    } else if (units.back().spans.back().role == role) {
        for (const Cell cell : cells) history_.extend_last(cell);
    } else {
        history_.add_span(role, std::move(cells));
    }
    count_attention();
    broken_ = false;
}

}  // namespace ot
