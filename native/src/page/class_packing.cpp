// Class packing: entries of shortened units move into earlier holes, so that later pages fall empty. Section 6.2.
#include "page/page.h"
#include "page/plan.h"

#include <algorithm>
#include <utility>

namespace ot {

namespace {

// Whether each page is empty or holds only Selected cells. No move changes that: only Selected cells move, and only
// into such pages.
std::vector<bool> destination_pages(const Layout & layout) {
    std::vector<bool> ok(layout.n_pages(), true);
    for (Cell cell = 0; cell < layout.size(); ++cell) {
        const CellClass cls = layout.at(cell);
        if (cls != CellClass::Free && cls != CellClass::Selected) ok[cell / layout.geometry().page_size] = false;
    }
    return ok;
}

// Every candidate takes the lowest free destination below it. One sweep finds them all: a cell that a candidate
// leaves lies above the hole it took, so no hole ever opens below `hole`.
std::vector<Move> pack(const Layout & layout) {
    const uint32_t page_size = layout.geometry().page_size;
    const std::vector<bool> ok = destination_pages(layout);
    std::vector<bool> free(layout.size());
    for (Cell cell = 0; cell < layout.size(); ++cell) free[cell] = layout.at(cell) == CellClass::Free;

    std::vector<Move> moves;
    Cell hole = 0;
    for (uint32_t page = 0; page < layout.n_pages(); ++page) {
        if (layout.page_class(page) == PageClass::Selected) continue;  // full, in place
        const Cell end = std::min((page + 1) * page_size, layout.size());
        for (Cell cell = page * page_size; cell < end; ++cell) {
            if (layout.at(cell) != CellClass::Selected) continue;
            while (hole < cell && !(free[hole] && ok[hole / page_size])) hole += 1;
            if (hole >= cell) continue;
            moves.push_back({cell, hole});
            free[hole] = false;
            free[cell] = true;
        }
    }
    return moves;
}

}  // namespace

MigrationPlan plan_class_packing(const Layout & layout) {
    const LayoutStats before = layout.stats();
    std::vector<Move> moves = pack(layout);
    if (moves.empty()) return refuse(Planner::ClassPacking, "no selected cell has a hole below it", before);
    const LayoutStats after = moved(layout, moves).stats();
    if (after.active_pages < before.active_pages) {
        return accept(Planner::ClassPacking, "fewer active pages", std::move(moves), before, after);
    }
    if (after.active_subblocks < before.active_subblocks) {
        return accept(Planner::ClassPacking, "fewer active subblocks", std::move(moves), before, after);
    }
    return refuse(Planner::ClassPacking, "no page or subblock would fall empty", before);
}

}  // namespace ot
