// Where new tokens go.
#include "page/page.h"

#include <algorithm>

namespace ot {

namespace {

// Appends free cells of [begin, end), ascending, until there are n.
void take_free(const Layout & layout, Cell begin, Cell end, uint32_t n, std::vector<Cell> & cells) {
    for (Cell cell = begin; cell < end && cells.size() < n; ++cell) {
        if (layout.at(cell) == CellClass::Free) cells.push_back(cell);
    }
}

// Open pages first, so that a page fills up before the next is begun; must-keep pages last, so that what is evicted
// soon doesn't share a page with what never is. Selected pages are full.
std::vector<Cell> place_by_class(const Layout & layout, uint32_t n) {
    const uint32_t page_size = layout.geometry().page_size;
    std::vector<PageClass> classes(layout.n_pages());
    for (uint32_t page = 0; page < classes.size(); ++page) classes[page] = layout.page_class(page);

    std::vector<Cell> cells;
    for (const PageClass wanted : {PageClass::Open, PageClass::Free, PageClass::Must}) {
        for (uint32_t page = 0; page < classes.size() && cells.size() < n; ++page) {
            if (classes[page] != wanted) continue;
            const Cell begin = page * page_size;
            take_free(layout, begin, std::min(begin + page_size, layout.size()), n, cells);
        }
    }
    std::sort(cells.begin(), cells.end());
    return cells;
}

// The slot search of llama.cpp for one ubatch, so that "OmniPick only" lies as it would there.
std::vector<Cell> place_natively(const Layout & layout, uint32_t n, uint32_t & head) {
    const Cell start = head > layout.used() + 2 * n ? 0 : std::min(head, layout.size());
    std::vector<Cell> cells;
    take_free(layout, start, layout.size(), n, cells);
    take_free(layout, 0, start, n, cells);
    head = cells.back() + 1;
    return cells;
}

}  // namespace

std::vector<Cell> place(const Layout & layout, uint32_t n, Placement placement, uint32_t & head) {
    std::vector<Cell> cells;
    if (n == 0 || layout.size() - layout.used() < n) return cells;
    switch (placement) {
        case Placement::Class: cells = place_by_class(layout, n); break;
        case Placement::Span: take_free(layout, 0, layout.size(), n, cells); break;
        case Placement::Native: cells = place_natively(layout, n, head); break;
    }
    return cells;
}

}  // namespace ot
