// What comes back for a question.
#include "recall/choice.h"

#include "builders.h"
#include "check.h"

#include <algorithm>

using namespace ot;

namespace {

std::vector<Candidate> seconds(const std::vector<float> & scores, uint32_t tokens = 10) {
    std::vector<Candidate> candidates;
    for (size_t i = 0; i < scores.size(); ++i) candidates.push_back({scores[i], tokens, static_cast<double>(10 * i), static_cast<double>(10 * i + 1)});
    return candidates;
}

ChoiceSettings budget(uint32_t tokens) {
    ChoiceSettings settings;
    settings.tokens = tokens;
    return settings;
}

float different(size_t, size_t) { return 0; }

Choice chosen(const std::vector<Candidate> & candidates, const ChoiceSettings & settings) { return choose(candidates, settings, different); }

// What none of them asks for: the unit in the middle gets as much as one of these.
std::vector<Candidate> among_others(std::vector<float> scores, size_t others = 9) {
    scores.insert(scores.end(), others, 0.05f);
    return seconds(scores);
}

}  // namespace

TEST(the_best_units_come_back_in_the_order_of_time) {
    const Choice choice = chosen(among_others({0.5f, 0.05f, 0.6f, 0.02f, 0.45f, 0.4f}), budget(30));
    CHECK(choice.verdict == Verdict::Recalled);
    CHECK((choice.units == std::vector<size_t>{0, 2, 4}));
    CHECK_EQ(choice.tokens, 30u);
    CHECK(choice.clearness > 11.99f && choice.clearness < 12.01f);
}

TEST(nothing_comes_back_where_nothing_stands_out) {
    CHECK(chosen(among_others({0.3f, 0.31f, 0.29f}, 2), budget(30)).verdict == Verdict::NotClear);
    CHECK(chosen(among_others({0.3f, 0.31f, 0.29f}, 2), budget(30)).units.empty());
    CHECK(chosen(seconds({0, 0}), budget(30)).verdict == Verdict::Nothing);
    CHECK(chosen({}, budget(30)).verdict == Verdict::Nothing);
    CHECK(chosen(seconds({0.3f}), budget(30)).verdict == Verdict::Recalled);
}

TEST(what_was_there_for_many_seconds_stands_out_as_well) {
    const Choice choice = chosen(among_others({0.4f, 0.38f, 0.39f, 0.37f}), budget(20));
    CHECK(choice.verdict == Verdict::Recalled);
    CHECK((choice.units == std::vector<size_t>{0, 2}));
}

TEST(what_is_far_behind_the_best_does_not_come_back) {
    CHECK((chosen(among_others({0.6f, 0.41f, 0.43f}), budget(100)).units == std::vector<size_t>{0, 2}));
    ChoiceSettings all = budget(100);
    all.share = 0;
    CHECK_EQ(chosen(among_others({0.6f, 0.41f, 0.43f}), all).units.size(), 10u);
}

TEST(neighbours_with_a_share_of_the_score_come_before_others) {
    std::vector<Candidate> candidates = among_others({0.5f, 0, 0, 0.16f, 0.6f, 0.31f});
    for (size_t i = 3; i < 6; ++i) {
        candidates[i].start_s = static_cast<double>(30 + i);
        candidates[i].end_s = static_cast<double>(31 + i);
    }
    CHECK((chosen(candidates, budget(20)).units == std::vector<size_t>{4, 5}));
}

TEST(a_unit_without_rows_or_room_does_not_come_back) {
    std::vector<Candidate> candidates = among_others({0.9f, 0.1f});
    candidates[0].tokens = 0;
    CHECK(chosen(candidates, budget(30)).verdict == Verdict::NoRoom);
    CHECK(chosen(candidates, budget(30)).units.empty());
    CHECK(chosen(seconds({0.9f, 0.1f, 0.1f}, 31), budget(30)).verdict == Verdict::NoRoom);
}

TEST(of_units_that_show_the_same_others_come_first) {
    const auto pairs = [](size_t a, size_t b) { return a / 2 == b / 2 ? 1.0f : 0.0f; };
    const std::vector<Candidate> candidates = among_others({0.6f, 0.59f, 0.58f, 0.57f});
    CHECK((choose(candidates, budget(20), pairs).units == std::vector<size_t>{0, 2}));
    CHECK((choose(candidates, budget(20), different).units == std::vector<size_t>{0, 1}));
}

TEST(choices_hold_their_budget) {
    Random random(6);
    for (int round = 0; round < 300; ++round) {
        std::vector<Candidate> candidates;
        double at = 0;
        for (uint32_t i = 0; i < random.below(30); ++i) {
            at += random.between(1, 3);
            candidates.push_back({static_cast<float>(random.below(100)) / 100.0f, random.below(40), at, at + 1});
        }
        ChoiceSettings settings = budget(random.below(200));
        settings.threshold = 1.0f;
        settings.share = static_cast<float>(random.below(3)) / 3.0f;
        const Choice choice = choose(candidates, settings, [&](size_t, size_t) { return static_cast<float>(random.below(2)); });
        uint32_t tokens = 0;
        for (const size_t unit : choice.units) tokens += candidates[unit].tokens;
        CHECK_EQ(tokens, choice.tokens);
        CHECK(tokens <= settings.tokens);
        CHECK(std::is_sorted(choice.units.begin(), choice.units.end()));
        CHECK(std::adjacent_find(choice.units.begin(), choice.units.end()) == choice.units.end());
        CHECK_EQ(choice.verdict == Verdict::Recalled, !choice.units.empty());
        for (const size_t unit : choice.units) CHECK(candidates[unit].tokens > 0);
    }
}
