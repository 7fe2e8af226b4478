// OmniPick, rule by rule. Section 5.1 of the paper; the numbered steps are those of docs/omnipick.md, "The rules".
#include "builders.h"
#include "check.h"
#include "pick/pick.h"

namespace ot {

namespace {

// The units that lose tokens: "1.8" has 8 left, "2-" is dropped.
std::string cuts_of(const RetentionPlan & plan) {
    std::string text;
    for (const UnitCut & cut : plan.cuts) {
        uint32_t left = 0;
        for (const KeepRange & r : cut.keep) left += r.end - r.begin;
        text += std::to_string(cut.unit) + (left == 0 ? "-" : "." + std::to_string(left)) + " ";
    }
    return text;
}

std::string keeps_of(const UnitCut & cut) {
    std::string text;
    for (const KeepRange & r : cut.keep) {
        text += std::to_string(r.span) + "[" + std::to_string(r.begin) + "," + std::to_string(r.end) + ") ";
    }
    return text;
}

PickSettings watermarks(uint32_t high, uint32_t low, uint32_t recent_units = 0) {
    PickSettings settings;
    settings.high_watermark = high;
    settings.low_watermark = low;
    settings.recent_units = recent_units;
    return settings;
}

}  // namespace

TEST(nothing_happens_up_to_the_high_watermark) {
    Builder b;
    b.system(10).media(50, 20).media(50, 20);  // 10 + 2 x 73
    const RetentionPlan at = plan_retention(b.ledger, watermarks(156, 50));
    CHECK(!at.triggered && at.cuts.empty());
    CHECK_EQ(at.before_tokens, 156u);
    CHECK_EQ(at.after_tokens, 156u);
    CHECK_EQ(at.full_units, 3u);
    CHECK(plan_retention(b.ledger, watermarks(155, 100)).triggered);
}

TEST(step_2_recent_units_are_counted_in_media_units_and_keep_what_lies_between) {
    Builder b;
    b.system(10).media(50, 20).media(50, 20).question(5).response(5).media(50, 20).question(5);
    struct Case { uint32_t recent_units; const char * cuts; };
    for (const Case & c : std::vector<Case>{{1, "1.11 2.11 "}, {2, "1.11 "}, {3, "1- "}, {9, "1- "}}) {
        CHECK_EQ(cuts_of(plan_retention(b.ledger, watermarks(200, 195, c.recent_units))), c.cuts);
    }
}

TEST(step_2_auto_takes_the_largest_window_that_fits) {
    Builder b;
    b.system(10).media(50, 20).media(50, 20).media(50, 20);  // 229; sinks of a unit: 3 + 4 + 4 = 11
    struct Case { uint32_t low; const char * cuts; };
    for (const Case & c : std::vector<Case>{
             {228, "1.11 "},       // 10 + 11 + 2 x 73 = 167 fits
             {167, "1.11 "},       // just so
             {166, "1.11 2.11 "},  // 10 + 22 + 73 = 105
             {105, "1.11 2.11 "},  //
             {104, "1- 2.11 "},    // one unit at least, then step 4
             {20, "1- 2- "},       // one unit is left
         }) {
        CHECK_EQ(cuts_of(plan_retention(b.ledger, watermarks(228, c.low))), c.cuts);
    }
}

TEST(step_2_without_media_every_unit_counts) {
    Builder b;
    b.system(10).question(300).response(300).question(300).response(300);
    const RetentionPlan plan = plan_retention(b.ledger, watermarks(1000, 900));
    CHECK_EQ(cuts_of(plan), "1.258 2- ");  // 10 + boundary and text budget + the last two units = 870
}

TEST(step_3_boundaries_sinks_and_text_budget) {
    Builder b;
    b.system(10);
    b.add(UnitKind::Media, {run(Role::Boundary, 2), run(Role::ImageSource, 30, 6), run(Role::Boundary, 1),
                            run(Role::ImageSlice, 20, 5), run(Role::ImageSlice, 3, 3), run(Role::Audio, 25),
                            run(Role::Text, 9), run(Role::System, 6), run(Role::Response, 9), run(Role::Boundary, 1)});
    b.media(50, 20);
    PickSettings settings = watermarks(150, 143, 1);
    settings.image_sinks = 4;
    settings.audio_sinks = 2;
    settings.text_budget = 17;
    const RetentionPlan plan = plan_retention(b.ledger, settings);
    CHECK_EQ(plan.cuts.size(), 1u);
    // Source whole; slices and sound their prefixes; text 9 + 6 + 2 of 17; boundaries all.
    CHECK_EQ(keeps_of(plan.cuts[0]),
             "0[0,2) 1[0,30) 2[0,1) 3[0,4) 4[0,3) 5[0,2) 6[0,9) 7[0,6) 8[0,2) 9[0,1) ");
    CHECK_EQ(plan.full_units, 2u);
    CHECK_EQ(plan.partial_units, 1u);
    CHECK_EQ(plan.dropped_units, 0u);
}

TEST(step_3_text_budget_is_shared_oldest_first_and_earlier_text_counts) {
    Builder b;
    b.system(10).question(30).response(30).media(50, 20).media(50, 20);
    PickSettings settings = watermarks(200, 150, 1);
    settings.text_budget = 40;
    const RetentionPlan first = plan_retention(b.ledger, settings);
    CHECK_EQ(cuts_of(first), "2.10 3.11 ");  // 30 + 10
    b.ledger.cut(first.cuts, true);
    // Next round: the 40 tokens kept before use up the budget; the new question keeps its boundary alone.
    b.question(20).media(50, 20);
    CHECK_EQ(cuts_of(plan_retention(b.ledger, settings)), "4.11 5.2 ");
}

TEST(step_3_sinks_of_an_image_in_two_pieces_are_counted_once) {
    Builder b(true);
    b.system(10);
    b.add(UnitKind::Media, {run(Role::ImageSlice, 40, 8)});
    b.ledger.cut({{1, {{0, 0, 2}, {0, 20, 40}}}}, true);  // as streaming-llm leaves it
    b.media(50, 20);
    const RetentionPlan plan = plan_retention(b.ledger, watermarks(100, 90, 1));
    CHECK_EQ(plan.cuts.size(), 1u);
    CHECK_EQ(keeps_of(plan.cuts[0]), "0[0,2) 1[0,2) ");
}

TEST(step_4_drops_partial_units_before_complete_ones_oldest_first) {
    // Units: 1 complete (a question, inside the budget), 2 and 3 shortened, 4 recent.
    Builder b;
    b.system(10).question(20).media(50, 20).media(50, 20).media(50, 20);
    struct Case { uint32_t low; const char * cuts; };
    for (const Case & c : std::vector<Case>{
             {127, "2.11 3.11 "},  // 10 + 22 + 22 + 73
             {126, "2- 3.11 "},
             {115, "2- 3- "},
             {104, "1- 2- 3- "},
             {0, "1- 2- 3- "},
         }) {
        CHECK_EQ(cuts_of(plan_retention(b.ledger, watermarks(200, c.low, 1))), c.cuts);
    }
}

TEST(step_4_never_drops_the_newest_unit_even_when_only_it_is_partial) {
    Builder b;
    b.system(10).question(20).media(90, 20);
    b.ledger.cut({{2, {{0, 0, 1}, {1, 0, 80}, {2, 0, 1}, {3, 0, 20}, {4, 0, 1}}}}, true);
    CHECK_EQ(cuts_of(plan_retention(b.ledger, watermarks(100, 50))), "1- ");
}

TEST(a_unit_above_the_high_watermark_alone_is_kept) {
    Builder b;
    b.system(10).media(400, 100);
    const RetentionPlan plan = plan_retention(b.ledger, watermarks(200, 100));
    CHECK(!plan.triggered);
    CHECK_EQ(plan.after_tokens, 513u);
    CHECK_EQ(plan.full_units, 2u);
}

TEST(image_only_audio_only_and_empty_units_work) {
    Builder b;
    b.add(UnitKind::Media, {run(Role::ImageSlice, 60)}).add(UnitKind::Media, {run(Role::Audio, 60)});
    b.ledger.append(UnitKind::Media, {}, {}, 0, 0);
    b.add(UnitKind::Media, {run(Role::Audio, 60)});
    b.ledger.append(UnitKind::Response, {}, {}, 0, 0);
    const RetentionPlan plan = plan_retention(b.ledger, watermarks(100, 70));
    CHECK_EQ(cuts_of(plan), "0.4 1.4 ");
    CHECK_EQ(plan.dropped_units, 2u);  // the empty ones: the cut forgets them
    b.ledger.cut(plan.cuts, true);
    CHECK_EQ(b.ledger.units().size(), 3u);
    CHECK_EQ(b.ledger.tokens(), 68u);

    Ledger empty(false);
    CHECK(!plan_retention(empty, watermarks(0, 0)).triggered);
}

}  // namespace ot
