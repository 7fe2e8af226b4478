// The policies that OmniPick is compared with. docs/omnipick.md, "The other policies".
#include "builders.h"
#include "check.h"
#include "pick/pick.h"

namespace ot {

namespace {

PickSettings settings_of(Policy policy, uint32_t high, uint32_t low) {
    PickSettings settings;
    settings.policy = policy;
    settings.high_watermark = high;
    settings.low_watermark = low;
    return settings;
}

// What is left, in the cells of the tokens ("0-4 7-9"), after one retention.
std::string left_after(Builder b, const PickSettings & settings) {
    b.ledger.cut(plan_retention(b.ledger, settings).cuts, true);
    std::string text;
    Cell begin = kNoCell;
    Cell last = kNoCell;
    const auto flush = [&] {
        if (begin != kNoCell) text += std::to_string(begin) + "-" + std::to_string(last) + " ";
    };
    for (const Unit & unit : b.ledger.units()) {
        for (const Cell cell : unit.cells) {
            if (begin == kNoCell || cell != last + 1) {
                flush();
                begin = cell;
            }
            last = cell;
        }
    }
    flush();
    return text;
}

struct Case {
    uint32_t low;
    const char * left;
};

// Cells: system 0-9, question 10-21 (2 + 10), media 22-54 (1 + 20 + 1 + 10 + 1), response 55-64.
Builder example() {
    Builder b;
    b.system(10).question(10).media(20, 10).response(10);
    return b;
}

}  // namespace

TEST(full_keeps_all) { CHECK_EQ(left_after(example(), settings_of(Policy::Full, 20, 10)), "0-64 "); }

TEST(fifo_drops_whole_units_oldest_first_but_never_the_newest) {
    for (const Case & c : std::vector<Case>{
             {64, "0-9 22-64 "}, {53, "0-9 22-64 "}, {52, "0-9 55-64 "}, {20, "0-9 55-64 "}, {0, "0-9 55-64 "}}) {
        CHECK_EQ(left_after(example(), settings_of(Policy::Fifo, 64, c.low)), c.left);
    }
    Builder b;
    b.response(5);
    b.ledger.append(UnitKind::Media, {}, {}, 0, 0);
    b.response(5);
    b.ledger.append(UnitKind::Media, {}, {}, 0, 0);  // empty: the newest with tokens is the one before
    CHECK_EQ(left_after(b, settings_of(Policy::Fifo, 9, 0)), "5-9 ");
}

TEST(recent_keeps_the_newest_media_units_and_nothing_older) {
    Builder b;
    for (int i = 0; i < 6; ++i) {
        b.media(4, 2);
        if (i == 3) b.question(3);
    }
    constexpr uint32_t unit = 9, question = 5, all = 6 * unit + question;
    CHECK_EQ(b.ledger.tokens(), all);
    const auto left = [&](uint32_t newest, uint32_t low) {
        PickSettings settings = settings_of(Policy::Recent, all - 1, low);
        settings.newest_units = newest;
        return plan_retention(b.ledger, settings).after_tokens;
    };
    CHECK_EQ(left(2, 20), 2 * unit);
    CHECK_EQ(left(3, all - 1), 3 * unit + question);  // with what was asked since
    CHECK_EQ(left(3, 20), 2 * unit);                  // the low watermark counts as well
    CHECK_EQ(left(7, all - 1), all - unit);           // there aren't as many
    CHECK_EQ(left(1, 0), unit);
}

TEST(token_drops_the_oldest_tokens_regardless_of_borders) {
    for (const Case & c : std::vector<Case>{
             {64, "0-9 11-64 "}, {52, "0-9 23-64 "}, {40, "0-9 35-64 "}, {10, "0-9 64-64 "}, {0, "0-9 64-64 "}}) {
        CHECK_EQ(left_after(example(), settings_of(Policy::Token, 64, c.low)), c.left);
    }
}

TEST(streaming_llm_keeps_sinks_and_the_most_recent_tokens) {
    for (const Case & c : std::vector<Case>{
             {64, "0-11 13-64 "}, {52, "0-11 25-64 "}, {13, "0-11 64-64 "}, {0, "0-11 64-64 "}}) {
        CHECK_EQ(left_after(example(), settings_of(Policy::StreamingLlm, 64, c.low)), c.left);
    }
    PickSettings many = settings_of(Policy::StreamingLlm, 64, 20);
    many.sinks = 30;  // a cut that splits one span: 10-39 and 64
    CHECK_EQ(left_after(example(), many), "0-39 64-64 ");
    many.sinks = 55;
    CHECK_EQ(left_after(example(), many), "0-64 ");
}

TEST(streaming_llm_recognises_its_sinks_in_the_next_round) {
    Builder b = example();
    PickSettings settings = settings_of(Policy::StreamingLlm, 64, 40);
    b.ledger.cut(plan_retention(b.ledger, settings).cuts, true);
    b.response(30);
    CHECK_EQ(left_after(b, settings), "0-11 67-94 ");
}

TEST(h2o_keeps_the_newest_half_and_the_heaviest_of_the_rest) {
    // Without scores the newer of equals stays: as token does.
    for (const Case & c : std::vector<Case>{
             {64, "0-9 11-64 "}, {52, "0-9 23-64 "}, {11, "0-9 64-64 "}, {10, "0-9 64-64 "}, {0, "0-9 64-64 "}}) {
        CHECK_EQ(left_after(example(), settings_of(Policy::H2o, 64, c.low)), c.left);
    }
    const auto scored = [](std::vector<std::pair<Cell, double>> scores) {
        Builder b = example();
        std::vector<double> by_cell(65, 1.0);
        for (const auto & [cell, score] : scores) by_cell[cell] = score;
        b.ledger.attend(by_cell);
        return b;
    };
    const PickSettings to_20 = settings_of(Policy::H2o, 64, 20);  // 5 newest, 5 heavy
    CHECK_EQ(left_after(scored({{12, 9}, {30, 5}, {31, 5}, {32, 4}, {50, 3}, {64, 99}}), to_20), "0-9 12-12 30-32 50-50 60-64 ");
    CHECK_EQ(left_after(scored({{12, 9}, {30, 5}, {31, 5}, {5, 99}}), to_20), "0-9 12-12 30-31 58-64 ");  // then the newer of equals
    const PickSettings to_13 = settings_of(Policy::H2o, 64, 13);  // 2 newest, 1 heavy
    CHECK_EQ(left_after(scored({{22, 2}, {10, 1.5}}), to_13), "0-9 22-22 63-64 ");
    // A unit that attention has never counted in has no scores: 0 each.
    Builder b = scored({});
    b.response(10).response(20);
    CHECK_EQ(left_after(b, settings_of(Policy::H2o, 64, 30)), "0-9 55-64 85-94 ");
}

TEST(h2o_recognises_its_heavy_hitters_in_the_next_round) {
    Builder b = example();
    std::vector<double> by_cell(65, 0.0);
    by_cell[12] = by_cell[30] = 7;
    b.ledger.attend(by_cell);
    PickSettings settings = settings_of(Policy::H2o, 50, 20);
    b.ledger.cut(plan_retention(b.ledger, settings).cuts, true);
    b.ledger.attend(std::vector<double>(65, 0.5));
    b.response(40);
    CHECK_EQ(left_after(b, settings), "0-9 12-12 30-30 62-64 100-104 ");
}

TEST(a_system_unit_alone_and_a_target_above_the_history_lose_nothing) {
    for (const Policy policy : {Policy::OmniPick, Policy::Fifo, Policy::Token, Policy::StreamingLlm, Policy::H2o}) {
        Builder b;
        b.system(100);
        CHECK(!plan_retention(b.ledger, settings_of(policy, 50, 20)).triggered);
        if (policy != Policy::OmniPick) CHECK(!plan_retention(example().ledger, settings_of(policy, 50, 70)).triggered);
    }
}

TEST(counts_tell_full_partial_and_dropped_units) {
    const RetentionPlan plan = plan_retention(example().ledger, settings_of(Policy::Token, 64, 40));
    CHECK(plan.triggered);
    CHECK_EQ(plan.before_tokens, 65u);
    CHECK_EQ(plan.after_tokens, 40u);
    CHECK_EQ(plan.full_units, 2u);
    CHECK_EQ(plan.partial_units, 1u);
    CHECK_EQ(plan.dropped_units, 1u);
}

}  // namespace ot
