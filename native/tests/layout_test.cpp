// Cells, pages, classes and counts. docs/omnipage.md, "Classes".
#include "builders.h"
#include "check.h"

namespace ot {

namespace {

constexpr Geometry kSmall{4, 2, 8};  // page, subblock, span_align

}  // namespace

TEST(a_cell_has_the_class_of_its_unit) {
    Builder b;
    b.system(2).response(3).response(2);
    b.ledger.cut({{1, {{0, 0, 1}}}}, true);
    CHECK_EQ(text_of(classify(b.ledger, 10, kSmall)), "SSs..rr...");
}

TEST(a_page_class_follows_from_its_cells) {
    struct Case { const char * cells; PageClass cls; };
    for (const Case & c : std::vector<Case>{{"....", PageClass::Free},
                                            {"S...", PageClass::Must},
                                            {"rssS", PageClass::Must},
                                            {"ssss", PageClass::Selected},
                                            {"sss.", PageClass::Open},
                                            {"sssr", PageClass::Open},
                                            {"rrrr", PageClass::Open},
                                            {"..r.", PageClass::Open},
                                            {"ss", PageClass::Selected}}) {  // a short last page
        CHECK(layout_of(c.cells, kSmall).page_class(0) == c.cls);
    }
    CHECK_EQ(layout_of("ssssr", kSmall).n_pages(), 2u);
    CHECK(layout_of("ssssr", kSmall).page_class(1) == PageClass::Open);
}

TEST(stats_count_what_attention_sees) {
    struct Case { const char * cells; uint32_t useful, pages, subblocks, page_span, physical_span, holes, largest; };
    for (const Case & c : std::vector<Case>{
             {"................", 0, 0, 0, 0, 8, 0, 0},
             {"r...............", 1, 1, 1, 4, 8, 0, 0},
             {"r...r...r.......", 3, 3, 3, 12, 16, 6, 3},
             {"rr.r....s.......", 4, 2, 3, 12, 16, 5, 4},
             {".......S........", 1, 1, 1, 8, 8, 7, 7},
             {"S.........r", 2, 2, 2, 12, 11, 9, 9},  // a cache that isn't a multiple of anything
         }) {
        const LayoutStats s = layout_of(c.cells, kSmall).stats();
        CHECK_EQ(s.useful_cells, c.useful);
        CHECK_EQ(s.active_pages, c.pages);
        CHECK_EQ(s.active_subblocks, c.subblocks);
        CHECK_EQ(s.page_span, c.page_span);
        CHECK_EQ(s.physical_span, c.physical_span);
        CHECK_EQ(s.holes, c.holes);
        CHECK_EQ(s.largest_hole, c.largest);
    }
}

TEST(set_keeps_count) {
    Layout layout(4, kSmall);
    layout.set(1, CellClass::Recent);
    layout.set(1, CellClass::Selected);
    layout.set(2, CellClass::Free);
    CHECK_EQ(layout.used(), 1u);
    layout.set(1, CellClass::Free);
    CHECK_EQ(layout.used(), 0u);
}

TEST(moves_gather_before_they_scatter) {
    CHECK_EQ(text_of(moved(layout_of("S.sr", kSmall), {{2, 1}, {3, 2}})), "Ssr.");
    CHECK_EQ(text_of(moved(layout_of("sr", kSmall), {{0, 1}, {1, 0}})), "rs");
}

}  // namespace ot
