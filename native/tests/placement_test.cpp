// Where new tokens go. docs/omnipage.md, "Placement".
#include "builders.h"
#include "check.h"

#include <functional>

namespace ot {

namespace {

constexpr Geometry kSmall{4, 2, 8};

std::string placed(const char * cells, uint32_t n, Placement placement, uint32_t head = 0) {
    std::string text;
    for (const Cell cell : place(layout_of(cells, kSmall), n, placement, head)) text += std::to_string(cell) + " ";
    return text;
}

// llama.cpp's loop as its behaviour is described: one cell at a time, wrapping, until every cell was tested.
std::vector<Cell> naive_slot_search(const Layout & layout, uint32_t n, uint32_t & head) {
    std::vector<Cell> cells;
    uint32_t at = head > layout.used() + 2 * n ? 0 : head;
    for (uint32_t tested = 0; tested < layout.size() && cells.size() < n; ++tested, ++at) {
        if (at >= layout.size()) at = 0;
        if (layout.at(at) == CellClass::Free) cells.push_back(at);
    }
    if (cells.size() < n) return {};
    head = cells.back() + 1;
    return cells;
}

}  // namespace

TEST(class_mode_fills_open_pages_then_free_then_must) {
    // Pages: Must with 2 free, Free, Selected, Open with 1 free, Open with 3 free.
    const char * cells = "SS......ssssrrr.s...";
    struct Case { uint32_t n; const char * placed; };
    for (const Case & c : std::vector<Case>{{0, ""},
                                            {1, "15 "},
                                            {3, "15 17 18 "},
                                            {5, "4 15 17 18 19 "},
                                            {8, "4 5 6 7 15 17 18 19 "},
                                            {9, "2 4 5 6 7 15 17 18 19 "},
                                            {10, "2 3 4 5 6 7 15 17 18 19 "},
                                            {11, ""}}) {  // too few free cells: none
        CHECK_EQ(placed(cells, c.n, Placement::Class), c.placed);
    }
}

TEST(span_mode_takes_the_lowest_free_cells) {
    CHECK_EQ(placed("S.r..rrr", 2, Placement::Span), "1 3 ");
    CHECK_EQ(placed("S.r..rrr", 3, Placement::Span), "1 3 4 ");
    CHECK_EQ(placed("S.r..rrr", 4, Placement::Span), "");
}

TEST(native_mode_searches_from_the_head_and_wraps) {
    struct Case { const char * cells; uint32_t n, head; const char * placed; };
    for (const Case & c : std::vector<Case>{
             {"rr......", 2, 2, "2 3 "},
             {"rr..rr..", 3, 5, "6 7 2 "},  // in search order
             {"r.......", 2, 5, "5 6 "},    // 5 is not above 1 + 2 * 2
             {"r.......", 2, 6, "1 2 "},    // 6 is: from the beginning
             {"rrrrrr..", 1, 8, "6 "},      // the head stands behind the last cell
             {"rrrrrr..", 3, 0, ""},
         }) {
        CHECK_EQ(placed(c.cells, c.n, Placement::Native, c.head), c.placed);
    }
    uint32_t head = 5;
    place(layout_of("rr..rr..", kSmall), 3, Placement::Native, head);
    CHECK_EQ(head, 3u);
    place(layout_of("rrrrrr..", kSmall), 3, Placement::Native, head);
    CHECK_EQ(head, 3u);  // a failed search leaves it
}

TEST(random_placements) {
    for (uint32_t seed = 0; seed < 2000 && !check::failed(); ++seed) {
        Random random(seed);
        Layout layout(random.between(1, 40), kSmall);
        const uint32_t fill = random.below(101);
        for (Cell cell = 0; cell < layout.size(); ++cell) {
            if (random.chance(fill)) layout.set(cell, static_cast<CellClass>(random.between(1, 3)));
        }
        const uint32_t n = random.between(1, layout.size());
        const bool fits = layout.size() - layout.used() >= n;
        for (const Placement placement : {Placement::Class, Placement::Span, Placement::Native}) {
            uint32_t head = random.below(layout.size() + 1);
            uint32_t naive_head = head;
            const std::vector<Cell> cells = place(layout, n, placement, head);
            CHECK_EQ(cells.size(), fits ? n : 0);
            for (const Cell cell : cells) CHECK(layout.at(cell) == CellClass::Free);
            if (placement == Placement::Native) {
                CHECK(cells == naive_slot_search(layout, n, naive_head));
                CHECK_EQ(head, naive_head);
            } else {
                CHECK(std::adjacent_find(cells.begin(), cells.end(), std::greater_equal<Cell>()) == cells.end());
                CHECK_EQ(head, naive_head);
            }
            if (placement != Placement::Class || !fits) continue;
            // No cell was taken from a worse page while a better one had room, nor out of order inside a class.
            const auto rank = [&](Cell cell) {
                const PageClass cls = layout.page_class(cell / kSmall.page_size);
                return std::pair<int, Cell>(cls == PageClass::Open ? 0 : cls == PageClass::Free ? 1 : 2, cell);
            };
            std::pair<int, Cell> worst{-1, 0};
            for (const Cell cell : cells) worst = std::max(worst, rank(cell));
            for (Cell cell = 0; cell < layout.size(); ++cell) {
                const bool taken = std::find(cells.begin(), cells.end(), cell) != cells.end();
                if (!taken && layout.at(cell) == CellClass::Free) CHECK(rank(cell) > worst);
            }
        }
    }
}

}  // namespace ot
