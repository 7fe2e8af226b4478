// How units are cut into batches.
#include "check.h"
#include "session/decode_runs.h"

#include <string>

namespace ot {

namespace {

PendingUnit picture_and_sound() {
    PendingUnit unit;
    const int32_t marks[] = {1, 2};
    unit.add_tokens(Role::Boundary, marks, 2);
    unit.add_rows(Role::ImageSlice, 3, 0, std::vector<float>(6), 6);
    unit.add_rows(Role::ImageSlice, 3, 0, std::vector<float>(6), 6);
    unit.add_tokens(Role::Boundary, marks, 1);
    unit.add_rows(Role::Audio, 0, 0, std::vector<float>(5), 5);
    unit.add_tokens(Role::Boundary, marks, 1);
    return unit;
}

// "2t 6f@0": two tokens, then six rows from the unit's first on, freely.
std::string told(const PendingUnit & unit, const RunRules & rules) {
    std::string text;
    uint32_t at = 0;
    for (const DecodeRun & run : decode_runs(unit, rules)) {
        CHECK_EQ(run.begin, at);
        at = run.end;
        text += (text.empty() ? "" : " ") + std::to_string(run.end - run.begin) + (run.freely ? "f" : run.as_rows ? "r" : "t");
        if (run.as_rows) text += "@" + std::to_string(run.first_row);
    }
    CHECK_EQ(at, unit.size());
    return text;
}

}  // namespace

TEST(a_unit_is_one_batch_where_text_goes_as_rows) {
    CHECK_EQ(told(picture_and_sound(), {true, false, 512}), std::string("21r@0"));
    CHECK_EQ(told(picture_and_sound(), {true, false, 8}), std::string("8r@0 8r@6 5r@13"));
}

TEST(tokens_and_rows_alternate_where_it_does_not) {
    CHECK_EQ(told(picture_and_sound(), {false, false, 512}), std::string("2t 12r@0 1t 5r@12 1t"));
    CHECK_EQ(told(picture_and_sound(), {false, false, 5}), std::string("2t 5r@0 5r@5 2r@10 1t 5r@12 1t"));
}

TEST(pictures_that_are_seen_as_a_whole_go_alone) {
    CHECK_EQ(told(picture_and_sound(), {false, true, 512}), std::string("2t 6f@0 6f@6 1t 5r@12 1t"));
    CHECK_EQ(told(picture_and_sound(), {true, true, 512}), std::string("2r@0 6f@0 6f@6 7r@12"));
    CHECK_EQ(told(picture_and_sound(), {false, true, 3}), std::string("2t 6f@0 6f@6 1t 3r@12 2r@15 1t"));
}

TEST(the_pieces_that_are_left_of_a_picture_go_together) {
    PendingUnit unit;
    unit.add_rows(Role::ImageSlice, 3, 0, std::vector<float>(2), 2);
    unit.add_rows(Role::ImageSlice, 3, 4, std::vector<float>(2), 2);
    unit.spans.back().continues = true;
    CHECK_EQ(told(unit, {false, true, 512}), std::string("4f@0"));
}

TEST(text_alone_stays_tokens) {
    PendingUnit unit;
    const int32_t words[] = {1, 2, 3};
    unit.add_tokens(Role::Text, words, 3);
    CHECK_EQ(told(unit, {true, true, 2}), std::string("2t 1t"));
}

}  // namespace ot
