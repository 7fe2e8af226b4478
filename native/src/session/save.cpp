// A session to bytes and back: the history, then the cached rows in ascending order of cells.
#include "session/session.h"

#include "omnitide.h"
#include "session/history_state.h"

#include <algorithm>
#include <utility>

namespace ot {
namespace {

std::vector<PlacedCell> placed_cells(const Ledger & ledger) {
    std::vector<PlacedCell> cells;
    cells.reserve(ledger.tokens());
    for (const Unit & unit : ledger.units()) {
        size_t token = 0;
        for (const Span & span : unit.spans) {
            for (uint32_t i = 0; i < span.length; ++i) {
                const TokenPosition p = token_position(span, i, ledger.mrope());
                cells.push_back({unit.cells[token++], p.t, p.y, p.x});
            }
        }
    }
    std::sort(cells.begin(), cells.end(), [](const PlacedCell & a, const PlacedCell & b) { return a.cell < b.cell; });
    return cells;
}

}  // namespace

void Session::require_rest() const {
    if (pending_ || answer_) throw Failure{OT_ERR_ARGUMENT, "a unit or an answer is unfinished"};
    if (!cache_) throw Failure{OT_ERR_UNSUPPORTED, "a session on llama.cpp's own memory can't be saved"};
}

void Session::save(ByteWriter & out) const {
    require_usable();
    require_rest();
    write_history(history_, out);
    std::vector<uint32_t> cells;
    cells.reserve(history_.ledger().tokens());
    for (const PlacedCell & placed : placed_cells(history_.ledger())) cells.push_back(placed.cell);
    cache_->write(cells, out);
}

void Session::restore(ByteReader & in) {
    if (broken_) {  // what was in hand went with it
        pending_.reset();
        answer_.reset();
    }
    require_rest();
    History history = read_history(in, mrope(), n_cells(), history_.settings());
    const SavedMemory rows = cache_->parse(history.ledger().tokens(), in);
    if (in.left() != 0) throw StateError{"it is longer than it should be"};

    broken_ = true;  // whatever is thrown from here on leaves ledger and cache apart
    cache_->restore(rows, placed_cells(history.ledger()));
    history_ = std::move(history);
    if (recall_) recall_->forget_from(history_.ledger().next_id());
    hides_remnants_ = false;
    forced_.clear();
    logits_ready_ = false;
    broken_ = false;
}

}  // namespace ot
