// Units that were cut come back for a question, and leave after it.
#include "session/history.h"

#include <utility>

namespace ot {
namespace {

std::vector<Row> in_place(const std::vector<Shift> & shifts) {
    std::vector<Row> rows;
    rows.reserve(shifts.size());
    for (const Shift & shift : shifts) rows.push_back({shift.cell, shift.cell, shift.delta});
    return rows;
}

}  // namespace

Recollection History::recall(std::vector<Unit> units) {
    uint32_t n = 0;
    for (const Unit & unit : units) {
        for (const Span & span : unit.spans) n += span.length;
    }
    Recollection done;
    done.cells = place(n);
    if (done.cells.empty()) return done;
    auto cell = done.cells.cbegin();
    for (Unit & unit : units) {
        unit.cells.clear();
        for (const Span & span : unit.spans) {
            unit.cells.insert(unit.cells.end(), cell, cell + span.length);
            cell += span.length;
        }
    }
    done.rows = in_place(ledger_.insert_recalled(std::move(units)));
    occupy(done.cells, CellClass::Recalled);
    return done;
}

Recollection History::dismiss() {
    CutResult cut = ledger_.remove_recalled();
    Recollection done;
    done.cells = std::move(cut.freed);
    done.rows = in_place(cut.shifts);
    if (done.cells.empty()) return done;
    occupy(done.cells, CellClass::Free);
    lower_head(done.cells.front());
    return done;
}

}  // namespace ot
