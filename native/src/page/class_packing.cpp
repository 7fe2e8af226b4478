// Class packing: entries of shortened units move into earlier holes, so that later pages fall empty. Section 6.2.
//
// The paper moves entries of shortened units alone, into pages of their class. What it leaves is that whole units which
// once filled such holes keep the rest of many pages active for as long as they are recent: 33 pages on average where 27
// suffice, in a simulation of 60 units of 256 + 25 tokens. So a second step empties what is then the sparsest page,
// whatever class it holds, as long as holes below it can take its entries: sparse pages cost few moves and win a whole
// page each.
#include "page/plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ot {

namespace {

// A layout under construction. Moves go down alone, so what eager compaction leaves in place is never moved.
class Packing {
public:
    explicit Packing(const Layout & layout)
        : layout_(layout), page_size_(layout.geometry().page_size), origin_(layout.size()), pages_(layout.n_pages()) {
        for (uint32_t i = 0; i < pages_.size(); ++i) {
            Page & page = pages_[i];
            page.size = std::min(page_size_, layout.size() - i * page_size_);
            for (Cell cell = i * page_size_; cell < i * page_size_ + page.size; ++cell) {
                const CellClass cls = layout.at(cell);
                origin_[cell] = cls == CellClass::Free ? kNoCell : cell;
                page.used += cls != CellClass::Free;
                page.selected += cls == CellClass::Selected;
                page.must = page.must || cls == CellClass::Must;
            }
        }
    }

    // Step 1, the paper's: every entry of a shortened unit outside full Selected pages takes the lowest hole below it in
    // a page that is empty or holds nothing but such entries. One sweep finds them all: a cell that an entry leaves lies
    // above the hole it took, so no hole ever opens below `hole`.
    void pack_selected() {
        const std::vector<Page> at_first = pages_;
        const auto takes = [&](Cell cell) {  // no move changes that
            if (origin_[cell] != kNoCell) return false;
            const Page & page = at_first[cell / page_size_];
            return page.used == page.selected;
        };
        Cell hole = 0;
        for (Cell cell = 0; cell < layout_.size(); ++cell) {
            if (layout_.at(cell) != CellClass::Selected) continue;
            if (const Page & page = at_first[cell / page_size_]; page.selected == page.size) continue;
            while (hole < cell && !takes(hole)) hole += 1;
            if (hole < cell) move(cell, hole);
        }
    }

    // Step 2: empties pages, the sparsest first (of equal ones the last), as far as lower pages that stay have holes.
    void empty_sparse_pages() {
        std::vector<uint32_t> order(pages_.size());
        std::iota(order.rbegin(), order.rend(), 0u);
        std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return pages_[a].used < pages_[b].used; });
        for (const uint32_t page : order) {
            if (is_open(pages_[page]) && holes_below(page) >= pages_[page].used) empty(page);
        }
    }

    std::vector<Move> moves() const {
        std::vector<Move> moves;
        for (Cell cell = 0; cell < layout_.size(); ++cell) {
            if (origin_[cell] != kNoCell && origin_[cell] != cell) moves.push_back({origin_[cell], cell});
        }
        std::sort(moves.begin(), moves.end(), [](const Move & a, const Move & b) { return a.src < b.src; });
        return moves;
    }

private:
    struct Page {
        uint32_t size = 0;
        uint32_t used = 0;
        uint32_t selected = 0;
        bool must = false;
    };

    // Has entries, could take more.
    static bool is_open(const Page & page) { return !page.must && page.used > 0 && page.used < page.size; }

    uint32_t holes_below(uint32_t page) const {
        uint32_t holes = 0;
        for (uint32_t i = 0; i < page; ++i) {
            if (is_open(pages_[i])) holes += pages_[i].size - pages_[i].used;
        }
        return holes;
    }

    void empty(uint32_t page) {
        Cell hole = 0;
        const Cell begin = page * page_size_;
        for (Cell cell = begin; cell < begin + pages_[page].size; ++cell) {
            if (origin_[cell] == kNoCell) continue;
            while (origin_[hole] != kNoCell || !is_open(pages_[hole / page_size_])) hole += 1;
            move(cell, hole);
        }
    }

    void move(Cell from, Cell to) {
        const bool selected = layout_.at(origin_[from]) == CellClass::Selected;
        Page & source = pages_[from / page_size_];
        Page & target = pages_[to / page_size_];
        source.used -= 1;
        source.selected -= selected;
        target.used += 1;
        target.selected += selected;
        origin_[to] = origin_[from];
        origin_[from] = kNoCell;
    }

    const Layout & layout_;
    uint32_t page_size_;
    std::vector<Cell> origin_;  // where the entry that now lies in a cell lay at first; kNoCell: the cell is free
    std::vector<Page> pages_;
};

}  // namespace

MigrationPlan plan_class_packing(const Layout & layout, const PlannerSettings &, const Forecast &) {
    const LayoutStats before = layout.stats();
    Packing packing(layout);
    packing.pack_selected();
    packing.empty_sparse_pages();
    std::vector<Move> moves = packing.moves();
    if (moves.empty()) return refuse(Planner::ClassPacking, "no entry has a hole to move into", before);
    const LayoutStats after = moved(layout, moves).stats();
    if (after.active_pages < before.active_pages) {
        return accept(Planner::ClassPacking, "fewer active pages", std::move(moves), before, after);
    }
    if (after.active_subblocks < before.active_subblocks) {
        return accept(Planner::ClassPacking, "fewer active subblocks", std::move(moves), before, after);
    }
    return refuse(Planner::ClassPacking, "no page or subblock would become empty", before);
}

}  // namespace ot
