// OmniPage: where the history lies. Section 6 of the OmniTide paper; the exact rules fill in what it leaves open.
//
// A layout says what each cell holds. What moves is planner.h's. Nothing here looks at contents or knows llama.cpp.
#pragma once

#include "ledger/ledger.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ot {

// Why a cell is still there (class of the unit that owns it). The values are part of the C API (OT_CELL_*).
enum class CellClass : uint8_t { Free, Must, Selected, Recent, Recalled };

// Follows from the cells of the page; nothing is stored twice.
//   Free: empty.  Must: holds any Must cell.  Selected: full, all cells Selected.  Open: the rest.
enum class PageClass : uint8_t { Free, Must, Selected, Open };

struct Geometry {
    uint32_t page_size = 64;
    uint32_t subblock_size = 32;  // divides page_size
    uint32_t span_align = 256;    // cells; what the backend rounds the attended span to
};

struct LayoutStats {
    uint32_t useful_cells = 0;
    uint32_t active_pages = 0;
    uint32_t active_subblocks = 0;
    uint32_t page_span = 0;      // highest used cell + 1, rounded up to pages
    uint32_t physical_span = 0;  // the same as the backend rounds it: at least span_align, at most the cache size
    uint32_t holes = 0;          // empty cells below the highest used one
    uint32_t largest_hole = 0;
};

// Spans of a cache of `n_cells` whose highest used cell is end - 1.
uint32_t page_span(uint32_t end, const Geometry & geometry);
uint32_t physical_span(uint32_t end, uint32_t n_cells, const Geometry & geometry);

class Layout {
public:
    Layout(uint32_t n_cells, Geometry geometry);

    const Geometry & geometry() const { return geometry_; }
    uint32_t size() const { return static_cast<uint32_t>(classes_.size()); }
    CellClass at(Cell cell) const { return classes_[cell]; }
    uint32_t used() const { return used_; }
    uint32_t end() const;  // highest used cell + 1
    void set(Cell cell, CellClass cls);

    PageClass page_class(uint32_t page) const;
    uint32_t n_pages() const;
    LayoutStats stats() const;

private:
    Geometry geometry_;
    std::vector<CellClass> classes_;
    uint32_t used_ = 0;
};

// Writes the class of every cell as the ledger stands: Must = system unit, Selected = its unit has lost a token,
// Recent = its unit is whole, Recalled = its unit was put back for a question.
Layout classify(const Ledger & ledger, uint32_t n_cells, Geometry geometry);

// --- placement: where new tokens go -------------------------------------------------------------------------------

enum class Placement : uint8_t { Class, Span, Native };

// The `n` cells that new tokens get, ascending; empty when fewer than n are free. Placement::Native is llama.cpp's own
// slot search: it returns the cells in search order (from `head`, wrapping) and moves `head` behind the last of them.
// The caller lowers `head` to the first cell that becomes free; so no free cell lies below it, and one search for all
// ubatches of a unit finds the cells that llama.cpp's one a ubatch would.
std::vector<Cell> place(const Layout & layout, uint32_t n, Placement placement, uint32_t & head);

struct Move {
    Cell src, dst;
};

// The layout after the moves (sources become free first: moves are gather-then-scatter).
Layout moved(const Layout & layout, const std::vector<Move> & moves);

}  // namespace ot
