// What each cell holds, and what follows from it: page classes and counts.
#include "page/page.h"

#include <algorithm>

namespace ot {

namespace {

uint32_t divide_up(uint32_t n, uint32_t unit) { return (n + unit - 1) / unit; }

}  // namespace

uint32_t page_span(uint32_t end, const Geometry & geometry) {
    return divide_up(end, geometry.page_size) * geometry.page_size;
}

uint32_t physical_span(uint32_t end, uint32_t n_cells, const Geometry & geometry) {
    const uint32_t aligned = std::max(1u, divide_up(end, geometry.span_align)) * geometry.span_align;
    return std::min(aligned, n_cells);
}

Layout::Layout(uint32_t n_cells, Geometry geometry) : geometry_(geometry), classes_(n_cells, CellClass::Free) {}

void Layout::set(Cell cell, CellClass cls) {
    if (classes_[cell] != CellClass::Free) used_ -= 1;
    if (cls != CellClass::Free) used_ += 1;
    classes_[cell] = cls;
}

uint32_t Layout::n_pages() const { return divide_up(size(), geometry_.page_size); }

uint32_t Layout::end() const {
    uint32_t end = size();
    while (end > 0 && classes_[end - 1] == CellClass::Free) --end;
    return end;
}

PageClass Layout::page_class(uint32_t page) const {
    const Cell begin = page * geometry_.page_size;
    const Cell end = std::min(begin + geometry_.page_size, size());
    uint32_t used = 0;
    uint32_t selected = 0;
    for (Cell cell = begin; cell < end; ++cell) {
        if (classes_[cell] == CellClass::Must) return PageClass::Must;
        used += classes_[cell] != CellClass::Free;
        selected += classes_[cell] == CellClass::Selected;
    }
    if (used == 0) return PageClass::Free;
    return selected == end - begin ? PageClass::Selected : PageClass::Open;
}

LayoutStats Layout::stats() const {
    LayoutStats stats;
    stats.useful_cells = used_;
    uint32_t end = 0;         // highest used cell + 1, so far
    uint32_t pages_seen = 0;  // the last active page + 1
    for (Cell begin = 0; begin < size(); begin += geometry_.subblock_size) {
        bool active = false;
        const Cell behind = std::min(begin + geometry_.subblock_size, size());
        for (Cell cell = begin; cell < behind; ++cell) {
            if (classes_[cell] == CellClass::Free) continue;
            stats.holes += cell - end;
            stats.largest_hole = std::max(stats.largest_hole, cell - end);
            end = cell + 1;
            active = true;
        }
        if (!active) continue;
        stats.active_subblocks += 1;
        const uint32_t page = begin / geometry_.page_size + 1;
        stats.active_pages += page != pages_seen;
        pages_seen = page;
    }
    stats.page_span = page_span(end, geometry_);
    stats.physical_span = physical_span(end, size(), geometry_);
    return stats;
}

Layout classify(const Ledger & ledger, uint32_t n_cells, Geometry geometry) {
    Layout layout(n_cells, geometry);
    for (const Unit & unit : ledger.units()) {
        const CellClass cls = unit.recalled                   ? CellClass::Recalled
                              : unit.kind == UnitKind::System ? CellClass::Must
                              : unit.partial                  ? CellClass::Selected
                                                              : CellClass::Recent;
        for (const Cell cell : unit.cells) layout.set(cell, cls);
    }
    return layout;
}

Layout moved(const Layout & layout, const std::vector<Move> & moves) {
    Layout after = layout;
    for (const Move & move : moves) after.set(move.src, CellClass::Free);
    for (const Move & move : moves) after.set(move.dst, layout.at(move.src));
    return after;
}

}  // namespace ot
