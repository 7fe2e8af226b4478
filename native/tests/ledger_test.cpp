// Units, spans, positions and cells. Section 5.2 of the paper; docs/runtime.md, "Positions".
#include "builders.h"
#include "check.h"

namespace ot {

namespace {

std::string cells_of(const Ledger & ledger) {
    std::string text;
    for (const Unit & unit : ledger.units()) {
        for (const Cell cell : unit.cells) text += std::to_string(cell) + " ";
        text += "| ";
    }
    return text;
}

std::string positions_of(const Ledger & ledger) {
    std::string text;
    for (const Unit & unit : ledger.units()) {
        for (const Span & span : unit.spans) {
            for (uint32_t i = 0; i < span.length; ++i) {
                const TokenPosition p = token_position(span, i, ledger.mrope());
                text += p.t == p.y && p.t == p.x
                            ? std::to_string(p.t) + " "
                            : std::to_string(p.t) + "," + std::to_string(p.y) + "," + std::to_string(p.x) + " ";
            }
        }
    }
    return text;
}

std::string text_of(const std::vector<Shift> & shifts) {
    std::string text;
    for (const Shift & s : shifts) text += std::to_string(s.cell) + ":" + std::to_string(s.delta) + " ";
    return text;
}

std::string text_of(const std::vector<Cell> & cells) {
    std::string text;
    for (const Cell cell : cells) text += std::to_string(cell) + " ";
    return text;
}

}  // namespace

TEST(source_images_and_slices_are_images) {
    for (const Role role : {Role::Boundary, Role::Audio, Role::Text, Role::Response, Role::System}) CHECK(!is_image(role));
    CHECK(is_image(Role::ImageSource) && is_image(Role::ImageSlice));
}

TEST(extent_of_a_prefix_is_the_larger_of_rows_and_columns) {
    struct Case { uint32_t width, first, length, extent; };
    for (const Case & c : std::vector<Case>{
             {0, 0, 7, 7},   // no raster
             {8, 0, 64, 8},  // 8 x 8 image
             {4, 0, 12, 4},  // wide: 3 rows, 4 columns
             {2, 0, 12, 6},  // tall
             {8, 0, 4, 4},   // a sink prefix in one row
             {2, 0, 5, 3},   // ceil(5 / 2)
             {8, 0, 0, 0},   // nothing
             {8, 2, 3, 5},   // columns 2..4 of row 0
             {8, 6, 3, 8},   // wraps into row 1: reached the last column
             {8, 17, 2, 3},  // columns 1..2 of row 2
         }) {
        CHECK_EQ(extent(c.width, c.first, c.length), c.extent);
    }
    for (uint32_t w = 1; w < 9; ++w) {
        for (uint32_t k = 1; k < 40; ++k) CHECK_EQ(extent(w, 0, k), std::max((k + w - 1) / w, std::min(k, w)));
    }
}

TEST(raster_tokens_share_t_under_mrope_and_take_a_position_each_without) {
    const std::vector<Span> spans = {run(Role::Text, 2), run(Role::ImageSource, 6, 3), run(Role::Text, 1)};
    Builder mrope(true);
    mrope.add(UnitKind::Media, spans);
    CHECK_EQ(positions_of(mrope.ledger), "0 1 2 2,2,3 2,2,4 2,3,2 2,3,3 2,3,4 5 ");
    CHECK_EQ(mrope.ledger.next_position(), 6);
    Builder plain(false);
    plain.add(UnitKind::Media, spans);
    CHECK_EQ(positions_of(plain.ledger), "0 1 2 3 4 5 6 7 8 ");
    CHECK_EQ(plain.ledger.next_position(), 9);
}

TEST(cut_shifts_survivors_by_what_was_deleted_before_them) {
    Builder b;
    b.system(2).question(3).response(3);  // cells 0 1 | 2 3 4 5 6 | 7 8 9
    const CutResult result = b.ledger.cut({{1, {{0, 0, 2}, {1, 0, 1}}}}, true);
    CHECK_EQ(text_of(result.freed), "5 6 ");
    CHECK_EQ(text_of(result.shifts), "7:-2 8:-2 9:-2 ");
    CHECK_EQ(cells_of(b.ledger), "0 1 | 2 3 4 | 7 8 9 | ");
    CHECK_EQ(positions_of(b.ledger), "0 1 2 3 4 5 6 7 ");
    CHECK_EQ(b.ledger.tokens(), 8u);
    CHECK_EQ(b.ledger.next_position(), 8);
    CHECK(b.ledger.units()[1].partial && !b.ledger.units()[2].partial);
    CHECK(b.ledger.units()[1].spans[1].role == Role::Text);  // labels survive
    CHECK_EQ(b.ledger.max_rotations(), 1u);
    CHECK_EQ(b.ledger.units()[0].spans[0].rotations, 0u);
}

TEST(cut_forgets_dropped_and_empty_units_and_keeps_ids) {
    Builder b;
    b.system(2).response(3).response(2);
    b.ledger.append(UnitKind::Response, {}, {}, 0, 0);
    const CutResult result = b.ledger.cut({{1, {}}}, true);
    CHECK_EQ(text_of(result.freed), "2 3 4 ");
    CHECK_EQ(b.ledger.units().size(), 2u);
    CHECK_EQ(b.ledger.units()[1].id, 2u);
    CHECK(!b.ledger.units()[1].partial);
}

TEST(cut_counts_extents_under_mrope) {
    Builder b(true);
    b.add(UnitKind::Media, {run(Role::Boundary, 1), run(Role::ImageSlice, 64, 8), run(Role::Boundary, 1)});
    CHECK_EQ(b.ledger.next_position(), 10);
    const CutResult result = b.ledger.cut({{0, {{0, 0, 1}, {1, 0, 4}, {2, 0, 1}}}}, true);
    CHECK_EQ(positions_of(b.ledger), "0 1 1,1,2 1,1,3 1,1,4 5 ");
    CHECK_EQ(text_of(result.shifts), "65:-4 ");
    CHECK_EQ(b.ledger.next_position(), 6);
}

TEST(two_ranges_of_a_raster_share_its_base_under_mrope) {
    Builder b(true);
    b.add(UnitKind::Media, {run(Role::ImageSource, 9, 3), run(Role::Text, 1)});
    b.ledger.cut({{0, {{0, 1, 3}, {0, 6, 9}, {1, 0, 1}}}}, true);
    CHECK_EQ(positions_of(b.ledger), "0,0,1 0,0,2 0,2,0 0,2,1 0,2,2 3 ");
    CHECK(!b.ledger.units()[0].spans[0].continues && b.ledger.units()[0].spans[1].continues);
    // The first piece goes: the second leads, and still knows where it lies.
    b.ledger.cut({{0, {{1, 0, 3}, {2, 0, 1}}}}, true);
    CHECK(!b.ledger.units()[0].spans[0].continues);
    CHECK_EQ(b.ledger.units()[0].spans[0].first, 6u);
    CHECK_EQ(positions_of(b.ledger), "0,2,0 0,2,1 0,2,2 3 ");
}

TEST(two_ranges_of_a_span_become_consecutive_without_mrope) {
    Builder b(false);
    b.add(UnitKind::Media, {run(Role::ImageSource, 9, 3), run(Role::Text, 1)});
    const CutResult result = b.ledger.cut({{0, {{0, 1, 3}, {0, 6, 9}, {1, 0, 1}}}}, true);
    CHECK_EQ(positions_of(b.ledger), "0 1 2 3 4 5 ");
    CHECK_EQ(text_of(result.shifts), "1:-1 2:-1 6:-4 7:-4 8:-4 9:-4 ");
    CHECK_EQ(b.ledger.units()[0].spans[1].first, 6u);
}

TEST(adjacent_ranges_stay_one_span_and_empty_ones_count_for_nothing) {
    Builder b;
    b.response(6);
    b.ledger.cut({{0, {{0, 0, 0}, {0, 0, 2}, {0, 2, 6}}}}, true);
    CHECK_EQ(b.ledger.units()[0].spans.size(), 1u);
    CHECK(!b.ledger.units()[0].partial);
}

TEST(sparse_positions_stay_until_the_gaps_are_closed) {
    Builder b;
    b.system(2).response(4).response(3);
    const CutResult result = b.ledger.cut({{1, {{0, 1, 2}}}}, false);
    CHECK(result.shifts.empty());
    CHECK_EQ(text_of(result.freed), "2 4 5 ");
    CHECK_EQ(positions_of(b.ledger), "0 1 3 6 7 8 ");
    CHECK_EQ(b.ledger.next_position(), 9);
    CHECK_EQ(b.ledger.max_rotations(), 0u);
    CHECK_EQ(text_of(b.ledger.close_gaps()), "3:-1 6:-3 7:-3 8:-3 ");
    CHECK_EQ(positions_of(b.ledger), "0 1 2 3 4 5 ");
    CHECK_EQ(b.ledger.next_position(), 6);
    CHECK(b.ledger.close_gaps().empty());
    CHECK_EQ(b.ledger.max_rotations(), 1u);
}

TEST(an_answer_grows_at_the_next_position) {
    Builder b;
    b.system(2).response(1);
    b.ledger.extend_last(10);
    b.ledger.add_span(Role::Boundary, {20, 21});
    CHECK_EQ(cells_of(b.ledger), "0 1 | 2 10 20 21 | ");
    CHECK_EQ(positions_of(b.ledger), "0 1 2 3 4 5 ");
    CHECK_EQ(b.ledger.tokens(), 6u);
    CHECK_EQ(b.ledger.next_position(), 6);
    // Its tail is cut with sparse positions: new tokens still take next_position().
    b.ledger.cut({{1, {{0, 0, 2}}}}, false);
    b.ledger.extend_last(30);
    b.ledger.extend_last(31);
    CHECK_EQ(positions_of(b.ledger), "0 1 2 3 6 7 ");
    CHECK(b.ledger.units()[1].spans[1].continues);
    CHECK_EQ(b.ledger.next_position(), 8);
}

TEST(cells_follow_a_relocation_even_in_a_chain) {
    Builder b;
    b.system(1).response(2);
    b.ledger.move_cells({1, 2}, {9, 1});
    b.ledger.move_cells({}, {});
    CHECK_EQ(cells_of(b.ledger), "0 | 9 1 | ");
}

TEST(scores_stay_with_their_tokens) {
    const auto scores_of = [](const Ledger & ledger) {
        std::string text;
        for (const Unit & unit : ledger.units()) {
            for (const double score : unit.scores) text += std::to_string(static_cast<int>(score)) + " ";
            text += "| ";
        }
        return text;
    };
    Builder b;
    b.system(2).response(3);
    CHECK_EQ(scores_of(b.ledger), "| | ");  // nothing is counted
    b.ledger.attend({1, 2, 3, 4, 5, 99});
    CHECK_EQ(scores_of(b.ledger), "1 2 | 3 4 5 | ");
    b.ledger.extend_last(5);
    b.ledger.add_span(Role::Boundary, {6, 7});
    CHECK_EQ(scores_of(b.ledger), "1 2 | 3 4 5 0 0 0 | ");
    b.ledger.attend({10, 10});  // of a shorter span: the rest received none
    CHECK_EQ(scores_of(b.ledger), "11 12 | 3 4 5 0 0 0 | ");
    b.ledger.cut({{1, {{0, 1, 2}, {0, 3, 4}, {1, 1, 2}}}}, true);
    CHECK_EQ(cells_of(b.ledger), "0 1 | 3 5 7 | ");
    CHECK_EQ(scores_of(b.ledger), "11 12 | 4 0 0 | ");
    b.ledger.move_cells({3, 5, 7}, {2, 3, 4});
    b.ledger.attend({0, 0, 1, 2, 3});
    CHECK_EQ(scores_of(b.ledger), "11 12 | 5 2 3 | ");
}

}  // namespace ot
