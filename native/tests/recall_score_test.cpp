// The share of the softmax mass against the formula written out, half-precision numbers, pooling, thinning.
#include "recall/half.h"
#include "recall/score.h"
#include "recall/stored_unit.h"

#include "builders.h"
#include "check.h"

#include <cmath>

using namespace ot;

namespace {

float number(Random & random) { return (static_cast<float>(random.below(2001)) - 1000.0f) / 500.0f; }

Queries questions(Random & random, uint32_t group) {
    Queries q;
    q.layers = 2;
    q.tokens = 3;
    q.key_heads = 2;
    q.heads = q.key_heads * group;
    q.head = 6;
    q.scale = 0.7f;
    q.values.resize(size_t{q.layers} * q.tokens * q.heads * q.head);
    for (float & value : q.values) value = number(random);
    return q;
}

// [unit][key][layer][width]
using Keys = std::vector<std::vector<uint16_t>>;

Keys keys_for(Random & random, const Queries & q, uint32_t units) {
    Keys all(units);
    for (auto & keys : all) {
        keys.resize(size_t{random.below(4)} * q.layers * q.width());
        for (uint16_t & key : keys) key = to_half(number(random));
    }
    return all;
}

std::vector<IndexedKeys> indexed(const Keys & all, const Queries & q) {
    std::vector<IndexedKeys> units;
    for (const auto & keys : all) units.push_back({keys.data(), static_cast<uint32_t>(keys.size() / (q.layers * q.width()))});
    return units;
}

std::vector<double> naive(const Keys & all, const Queries & q) {
    std::vector<double> shares(all.size(), 0.0);
    for (uint32_t layer = 0; layer < q.layers; ++layer) {
        for (uint32_t token = 0; token < q.tokens; ++token) {
            for (uint32_t head = 0; head < q.heads; ++head) {
                const float * query = q.values.data() + ((size_t{layer} * q.tokens + token) * q.heads + head) * q.head;
                const uint32_t key_head = head / (q.heads / q.key_heads);
                std::vector<double> weights(all.size(), 0.0);
                double sum = 0;
                for (size_t unit = 0; unit < all.size(); ++unit) {
                    for (size_t k = 0; k < all[unit].size() / (q.layers * q.width()); ++k) {
                        double product = 0;
                        for (uint32_t i = 0; i < q.head; ++i) {
                            const uint16_t key = all[unit][(k * q.layers + layer) * q.width() + key_head * q.head + i];
                            product += static_cast<double>(from_half(key)) * static_cast<double>(query[i]);
                        }
                        const double weight = std::exp(product * static_cast<double>(q.scale));
                        weights[unit] += weight;
                        sum += weight;
                    }
                }
                for (size_t unit = 0; unit < all.size(); ++unit) shares[unit] += sum > 0 ? weights[unit] / sum : 0;
            }
        }
    }
    for (double & share : shares) share /= q.layers * q.tokens * q.heads;
    return shares;
}

}  // namespace

TEST(masses_are_the_share_of_attention) {
    Random random(11);
    for (int round = 0; round < 40; ++round) {
        const Queries q = questions(random, random.between(1, 3));
        const Keys keys = keys_for(random, q, random.between(1, 8));
        const std::vector<float> found = masses(indexed(keys, q), q);
        const std::vector<double> expected = naive(keys, q);
        for (size_t i = 0; i < found.size(); ++i) CHECK(std::abs(static_cast<double>(found[i]) - expected[i]) < 1e-6);
    }
}

TEST(masses_of_nothing_are_nothing) {
    Random random(1);
    Queries q = questions(random, 1);
    CHECK(masses({}, q).empty());
    const Keys none(2);
    CHECK_EQ(masses(indexed(none, q), q)[0], 0.0f);
    q.tokens = 0;
    q.values.clear();
    Queries other = questions(random, 1);
    CHECK_EQ(masses(indexed(keys_for(random, other, 2), other), q)[1], 0.0f);
}

TEST(masses_hold_for_large_logits) {
    Random random(2);
    Queries q = questions(random, 1);
    q.scale = 1e4f;
    const Keys keys = keys_for(random, q, 6);
    float sum = 0;
    for (const float share : masses(indexed(keys, q), q)) sum += share;
    CHECK(std::abs(sum - 1.0f) < 1e-5f);
}

TEST(what_any_question_draws_counts_for_less) {
    const std::vector<float> shares{0.5f, 0.3f, 0.2f, 0.0f};
    const std::vector<float> found = against(shares, {0.9f, 0.05f, 0.04f, 0.01f});
    CHECK(found[1] > found[2] && found[2] > found[0]);
    CHECK_EQ(found[3], 0.0f);
    float sum = 0;
    for (const float score : found) sum += score;
    CHECK(std::abs(sum - 1.0f) < 1e-6f);
    CHECK(std::abs(found[1] / found[2] - (0.09f / 0.05f) / (0.04f / 0.04f)) < 1e-4f);

    for (const float score : against(shares, {0, 0, 0, 0})) CHECK(std::isfinite(score));
    for (const float score : against({0, 0}, {0.5f, 0.5f})) CHECK_EQ(score, 0.0f);
    CHECK(against({}, {}).empty());
}

TEST(units_are_alike_by_what_sets_them_apart) {
    Queries q;
    q.layers = 1;
    q.key_heads = 1;
    q.head = 3;
    const auto halves = [](std::vector<float> values) {
        std::vector<uint16_t> out;
        for (const float value : values) out.push_back(to_half(value));
        return out;
    };
    const Keys keys{halves({9, 1, 0}), halves({9, 1, 0}), halves({9, -1, 0, 9, -1, 0}), halves({9, -1, 0})};
    const Likeness like(indexed(keys, q), 3);
    CHECK(std::abs(like(0, 1) - 1.0f) < 1e-3f);
    CHECK(std::abs(like(2, 3) - 1.0f) < 1e-3f);
    CHECK(std::abs(like(0, 3) + 1.0f) < 1e-3f);
}

TEST(halves_are_exact_and_rounded_to_the_nearest) {
    for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
        for (const uint32_t sign : {0u, 0x8000u}) {
            const auto half = static_cast<uint16_t>(bits | sign);
            const int exponent = static_cast<int>(bits >> 10);
            const double mantissa = static_cast<double>(bits & 0x3ff) / 1024.0;
            const double value = (exponent == 0 ? std::ldexp(mantissa, -14) : std::ldexp(1.0 + mantissa, exponent - 15)) * (sign ? -1 : 1);
            CHECK(static_cast<double>(from_half(half)) == value);
            CHECK_EQ(to_half(from_half(half)), half);
        }
    }
    CHECK_EQ(to_half(1.0f + 0.75f / 1024.0f), to_half(1.0f + 1.0f / 1024.0f));
    CHECK_EQ(to_half(1.0f + 0.5f / 1024.0f), to_half(1.0f));  // a tie goes to the even one
    CHECK_EQ(to_half(1e9f), uint16_t{0x7bff});
    CHECK_EQ(to_half(-1e-9f), uint16_t{0x8000});
    CHECK_EQ(to_half(NAN), uint16_t{0});
}

TEST(about_twelve_keys_are_left_of_a_second) {
    const std::vector<Span> spans{run(Role::Boundary, 1), run(Role::ImageSlice, 16, 4), run(Role::Boundary, 2), run(Role::Audio, 25), run(Role::Boundary, 1)};
    const std::vector<TokenRun> runs = pooled_runs(spans);
    CHECK_EQ(runs.size(), size_t{1 + 4 + 2 + 5 + 1});
    CHECK_EQ(runs[1].begin, 1u);
    CHECK_EQ(runs[1].end, 5u);
    CHECK_EQ(runs.back().begin, 44u);
    CHECK_EQ(runs.back().end, 45u);
    CHECK_EQ(pooled_runs({run(Role::ImageSlice, 256, 16), run(Role::Audio, 25)}).size(), size_t{9});
    CHECK_EQ(pooled_runs({run(Role::Text, 100), run(Role::Boundary, 2)}).size(), size_t{14});
    CHECK_EQ(pooled_runs({run(Role::ImageSource, 64, 8), run(Role::ImageSlice, 64, 8), run(Role::ImageSlice, 64, 8)}).size(), size_t{6});
}

TEST(runs_cover_every_token_once) {
    Random random(4);
    for (int round = 0; round < 100; ++round) {
        std::vector<Span> spans;
        uint32_t n = 0;
        for (uint32_t i = 0; i < random.between(1, 6); ++i) {
            spans.push_back(run(static_cast<Role>(random.below(7)), random.between(1, 70)));
            n += spans.back().length;
        }
        uint32_t next = 0;
        for (const TokenRun & each : pooled_runs(spans)) {
            CHECK_EQ(each.begin, next);
            CHECK(each.end > each.begin);
            next = each.end;
        }
        CHECK_EQ(next, n);
    }
}

TEST(markers_tell_most_and_then_what_is_least_alike) {
    const std::vector<Span> spans{run(Role::Audio, 3), run(Role::Boundary, 1)};
    const std::vector<float> keys{1, 0, 0.9f, 0.1f, -1, 0, 1, 0.01f};
    const std::vector<uint32_t> order = by_telling(spans, keys);
    CHECK((order == std::vector<uint32_t>{3, 2, 1, 0}));
}

TEST(thinning_leaves_the_most_telling_tokens_where_they_were) {
    for (const bool mrope : {false, true}) {
        Builder builder(mrope);
        builder.add(UnitKind::Media, {run(Role::Boundary, 1), run(Role::ImageSlice, 9, 3), run(Role::Audio, 6)});
        StoredUnit unit;
        unit.spans = builder.ledger.units()[0].spans;
        const std::vector<TokenPosition> before = token_positions(unit.spans, mrope);
        unit.telling = {0, 9, 4, 5, 12, 10, 1, 2, 3, 6, 7, 8, 11, 13, 14, 15};
        const std::vector<uint32_t> kept = thin(unit, 5, mrope);
        CHECK((kept == std::vector<uint32_t>{0, 4, 5, 9, 12}));
        CHECK_EQ(unit.tokens(), 5u);
        CHECK((unit.telling == std::vector<uint32_t>{0, 3, 1, 2, 4}));
        const std::vector<TokenPosition> after = token_positions(unit.spans, mrope);
        for (size_t i = 0; i < kept.size(); ++i) CHECK(after[i].t == before[kept[i]].t && after[i].y == before[kept[i]].y && after[i].x == before[kept[i]].x);
        CHECK((thin(unit, 2, mrope) == std::vector<uint32_t>{0, 3}));
        CHECK(thin(unit, 0, mrope).empty());
        CHECK(unit.spans.empty() && unit.telling.empty());
    }
}
