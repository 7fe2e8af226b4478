// What benchmarks need of a session: histories that were never prefilled, and updates that leave no trace.
#include "session/session.h"

#include "omnitide.h"
#include "session/history_state.h"

#include <algorithm>
#include <utility>

namespace ot {
namespace {

// While it lives, attention is timed if asked for.
class Watching {
public:
    Watching(AttentionProbe & probe, bool time, bool sums) : probe_(probe), sums_(sums) { probe_.watch(time, sums_); }
    ~Watching() {
        probe_.watch(false, sums_);
        probe_.take_ms();
    }

private:
    AttentionProbe & probe_;
    bool sums_;
};

}  // namespace

void Session::fill_cache(uint32_t seed) {
    require_usable();
    if (!cache_) throw Failure{OT_ERR_UNSUPPORTED, "llama.cpp's own memory can't be filled"};
    cache_->fill_random(seed);
}

void Session::inject(std::vector<Cell> cells) {
    if (!cache_) throw Failure{OT_ERR_UNSUPPORTED, "llama.cpp's own memory accepts only computed rows"};
    PendingUnit unit = finished_unit();
    if (cells.empty()) {
        make_room(unit.size());
        cells = history_.place(unit.size());
    }
    std::vector<bool> taken(n_cells());
    const bool fit = cells.size() == unit.size() && std::all_of(cells.begin(), cells.end(), [&](Cell cell) {
        if (cell >= taken.size() || taken[cell] || !cache_->is_empty(cell)) return false;
        return static_cast<bool>(taken[cell] = true);
    });
    if (!fit) throw Failure{OT_ERR_ARGUMENT, "a unit needs one empty cell per token"};
    history_.lay_out(unit.spans);
    const std::vector<TokenPosition> positions = token_positions(unit.spans, mrope());
    for (size_t i = 0; i < cells.size(); ++i) cache_->occupy(cells[i], positions[i].t, positions[i].y, positions[i].x);
    history_.append(unit.kind, std::move(unit.spans), std::move(cells), unit.start_s, unit.end_s);
}

void Session::inject_history(ByteReader & in) {
    require_usable();
    require_rest();
    History history = read_history(in, mrope(), n_cells(), history_.settings());
    if (in.left() != 0) throw StateError{"it is longer than it should be"};
    for (const Unit & unit : history_.ledger().units()) cache_->remove(unit.cells);
    for (const Unit & unit : history.ledger().units()) {
        const std::vector<TokenPosition> positions = token_positions(unit.spans, mrope());
        for (size_t i = 0; i < positions.size(); ++i) cache_->occupy(unit.cells[i], positions[i].t, positions[i].y, positions[i].x);
    }
    history_ = std::move(history);
    hides_remnants_ = false;
    forced_.clear();
    logits_ready_ = false;
}

double Session::dry_run(float * logits, double * attention_ms) {
    PendingUnit unit = finished_unit();
    make_room(unit.size());
    history_.lay_out(unit.spans);
    const std::vector<TokenPosition> positions = token_positions(unit.spans, mrope());
    const std::vector<Cell> cells = History(history_).place(unit.size());
    const Watching watching{probe_, attention_ms != nullptr, counts_attention()};
    const Stopwatch watch;
    {
        const Abortable scope{abortable_};
        decode(unit, positions, cells, logits != nullptr);
    }
    const double ms = watch.ms();
    if (attention_ms) *attention_ms = probe_.take_ms();
    if (logits) std::copy_n(this->logits(), n_vocab(), logits);
    logits_ready_ = false;  // no answer follows what was taken back
    take_back(cells, positions.front().t);
    return ms;
}

}  // namespace ot
