// A history to bytes and back, and bytes that are no history.
#include "session/history_state.h"

#include "builders.h"
#include "check.h"
#include "ledger/violation.h"

#include <functional>

using namespace ot;

namespace {

constexpr uint32_t kCells = 256;

HistorySettings settings(Planner planner = Planner::ClassPacking, Policy policy = Policy::OmniPick) {
    HistorySettings s;
    s.pick.policy = policy;
    s.pick.high_watermark = 120;
    s.pick.low_watermark = 80;
    s.pick.text_budget = 12;
    s.page.planner = planner;
    s.page.min_pages = 1;
    s.geometry = {16, 8, 32};
    return s;
}

void add(History & history, UnitKind kind, std::vector<Span> spans) {
    uint32_t n = 0;
    for (const Span & span : spans) n += span.length;
    if (history.free_cells() < n) history.maintain(kCells - n);
    history.lay_out(spans);
    history.append(kind, std::move(spans), history.place(n), 1.0, 2.0);
}

void feed(History & history, Random & random, uint32_t units) {
    for (uint32_t i = 0; i < units; ++i) {
        const uint32_t width = random.between(2, 5);
        add(history, UnitKind::Media,
            {run(Role::Boundary, 1), run(Role::ImageSlice, width * random.between(2, 5), width), run(Role::Audio, random.between(1, 9))});
        if (random.chance(30)) {
            add(history, UnitKind::Question, {run(Role::Text, random.between(1, 9)), run(Role::Boundary, 1)});
            add(history, UnitKind::Response, {run(Role::Response, 1)});
            const uint32_t tokens = random.below(12);
            for (uint32_t t = 0; t < tokens && history.free_cells() > 0; ++t) history.extend_last(history.place(1).front());
        }
        if (history.settings().pick.policy == Policy::H2o) {
            std::vector<double> attention(kCells);
            for (double & of : attention) of = random.below(1000);
            history.attend(attention);
        }
        if (random.chance(60)) history.maintain(0);
    }
}

History pressed(bool mrope, const HistorySettings & s, uint32_t seed) {
    History history(mrope, kCells, s);
    Random random(seed);
    add(history, UnitKind::System, {run(Role::System, 7)});
    feed(history, random, 40);
    return history;
}

std::vector<uint8_t> saved(const History & history) {
    ByteWriter count(nullptr, 0);
    write_history(history, count);
    std::vector<uint8_t> bytes(count.size());
    ByteWriter writer(bytes.data(), bytes.size());
    write_history(history, writer);
    CHECK_EQ(writer.size(), bytes.size());
    return bytes;
}

History restored(const std::vector<uint8_t> & bytes, bool mrope, const HistorySettings & s, uint32_t n_cells = kCells) {
    ByteReader reader(bytes.data(), bytes.size());
    History history = read_history(reader, mrope, n_cells, s);
    CHECK_EQ(reader.left(), size_t{0});
    return history;
}

std::string refusal(const std::vector<uint8_t> & bytes, bool mrope, uint32_t n_cells = kCells) {
    try {
        ByteReader reader(bytes.data(), bytes.size());
        read_history(reader, mrope, n_cells, settings());
        return "";
    } catch (const StateError & error) {
        return error.what;
    }
}

// What `change` makes of a sound history of two units.
std::string violation_after(const std::function<void(std::vector<Unit> &)> & change, bool mrope = true) {
    Builder built(mrope);
    built.system(3);
    built.add(UnitKind::Media, {run(Role::ImageSlice, 6, 3), run(Role::Audio, 4)});
    std::vector<Unit> units = built.ledger.units();
    change(units);
    return violation(units, mrope, built.ledger.next_id(), built.ledger.next_position(), 16);
}

}  // namespace

TEST(a_restored_history_goes_on_as_the_saved_one) {
    for (const Planner planner : {Planner::Native, Planner::Eager, Planner::ClassPacking, Planner::OrderedSuffix, Planner::HoleFilling, Planner::Auto}) {
        for (const Policy policy : {Policy::OmniPick, Policy::Fifo, Policy::Token, Policy::StreamingLlm, Policy::H2o}) {
            for (const bool mrope : {false, true}) {
                HistorySettings s = settings(planner, policy);
                s.compact_positions = policy != Policy::Token;
                History history = pressed(mrope, s, 7);
                History again = restored(saved(history), mrope, s);
                CHECK(saved(again) == saved(history));
                CHECK_EQ(text_of(again.layout()), text_of(history.layout()));
                Random one(3), other(3);
                feed(history, one, 20);
                feed(again, other, 20);
                CHECK(saved(again) == saved(history));
            }
        }
    }
}

TEST(a_history_may_go_on_under_another_planner_and_in_a_larger_cache) {
    const History history = pressed(true, settings(Planner::ClassPacking), 1);
    const History again = restored(saved(history), true, settings(Planner::Eager), 2 * kCells);
    CHECK(again.placement() == placement_for(Planner::Eager));
    CHECK_EQ(again.layout().size(), 2 * kCells);
    CHECK_EQ(again.ledger().tokens(), history.ledger().tokens());
}

TEST(a_history_of_other_positions_or_for_a_larger_cache_is_refused) {
    const History history = pressed(true, settings(), 1);
    CHECK(refusal(saved(history), true).empty());
    CHECK(refusal(saved(history), false).find("a different kind") != std::string::npos);
    CHECK(refusal(saved(history), true, history.layout().end() - 1).find("needs a cache of") != std::string::npos);
}

TEST(a_cut_history_is_refused_wherever_it_was_cut) {
    const std::vector<uint8_t> bytes = saved(pressed(true, settings(), 1));
    for (size_t n = 0; n < bytes.size(); n += 3) {
        CHECK(!refusal({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n)}, true).empty());
    }
}

TEST(what_breaks_an_invariant_is_named) {
    CHECK_EQ(violation_after([](auto &) {}), "");
    CHECK_EQ(violation_after([](auto & u) { u[1].id = u[0].id; }), "the order of units");
    CHECK_EQ(violation_after([](auto & u) { u[1].id = 99; }), "the order of units");
    CHECK_EQ(violation_after([](auto & u) { u[0].end_s = 1e308 * 10; }), "a time");
    CHECK_EQ(violation_after([](auto & u) { u[0].spans.clear(); }), "a unit without spans");
    CHECK_EQ(violation_after([](auto & u) { u[1].spans[0].length = 0; }), "a span's size");
    CHECK_EQ(violation_after([](auto & u) { u[1].spans[0].first = UINT32_MAX; }), "a span's size");
    CHECK_EQ(violation_after([](auto & u) { u[1].spans[1].width = 2; }), "a raster that is no image");
    CHECK_EQ(violation_after([](auto & u) { u[1].spans[0].continues = true; }), "a span that continues nothing");
    CHECK_EQ(violation_after([](auto & u) { u[1].spans[1].continues = true; }), "a span that continues another kind");
    CHECK_EQ(violation_after([](auto & u) { u[1].spans[0].base = -5; }), "the order of positions");
    CHECK_EQ(violation_after([](auto & u) { u[1].spans[1].base = u[1].spans[0].base; }), "the order of positions");
    CHECK_EQ(violation_after([](auto & u) { u[1].spans[1].base = INT32_MAX; }), "a position");
    CHECK_EQ(violation_after([](auto & u) { u[1].spans[1].base = 1 << 20; }), "the next position");
    CHECK_EQ(violation_after([](auto & u) { u[1].spans[1].length += 1; }), "the number of a unit's tokens");
    CHECK_EQ(violation_after([](auto & u) { u[1].cells[0] = u[0].cells[0]; }), "a cell");
    CHECK_EQ(violation_after([](auto & u) { u[1].cells[0] = 16; }), "a cell");
    CHECK_EQ(violation_after([](auto & u) { u[1].scores = std::vector<double>(10, 0.5); }), "");
    CHECK_EQ(violation_after([](auto & u) { u[1].scores = {1.0}; }), "the number of a unit's scores");
    CHECK_EQ(violation_after([](auto & u) { u[0].scores = {0, -0.5, 0}; }), "a score");
    CHECK_EQ(violation_after([](auto & u) { u[0].scores = {0, 0, 1e308 * 10}; }), "a score");
}

// 34 bytes each, three times as many in memory.
TEST(units_without_spans_are_refused_one_by_one) {
    std::vector<uint8_t> bytes(1 << 12);
    ByteWriter out{bytes.data(), bytes.size()};
    out.put(uint8_t{0});
    out.put(uint8_t{0});
    out.put(uint32_t{0});  // head
    out.put(uint64_t{2});
    out.put(int32_t{0});
    out.put(uint32_t{1});  // one unit
    out.put(uint64_t{1});
    out.put(uint16_t{0});  // kind, properties
    out.put(0.0);
    out.put(0.0);
    out.put(uint32_t{0});  // spans
    out.put(uint32_t{0});  // cells
    ByteReader in{bytes.data(), out.size()};
    std::string what;
    try {
        read_history(in, false, 64, {});
    } catch (const StateError & error) {
        what = error.what;
    }
    CHECK_EQ(what, "its history is damaged (a unit without spans)");
}

TEST(pieces_of_an_image_lie_in_order_and_at_one_base) {
    const auto split = [](std::vector<Unit> & u) {
        Span & piece = u[1].spans[0];
        Span rest = piece;
        piece.length = 2;
        rest.first = 3;
        rest.length = 3;
        rest.continues = true;
        u[1].spans.insert(u[1].spans.begin() + 1, rest);
        u[1].cells.pop_back();
    };
    CHECK_EQ(violation_after(split), "");
    const std::string wrong = "the order of an image's pieces";
    CHECK_EQ(violation_after([&](auto & u) { split(u); u[1].spans[1].first = 1; }), wrong);
    CHECK_EQ(violation_after([&](auto & u) { split(u); u[1].spans[1].base += 1; }), wrong);
}

TEST(mutated_histories_are_refused_or_go_on) {
    Random random(11);
    uint32_t refused = 0;
    for (uint32_t attempt = 0; attempt < 4000; ++attempt) {
        const bool mrope = attempt % 2 == 0;
        static const HistorySettings scored = settings(Planner::ClassPacking, Policy::H2o);
        static const std::vector<uint8_t> originals[] = {saved(pressed(false, scored, 5)), saved(pressed(true, settings(), 5))};
        std::vector<uint8_t> bytes = originals[mrope];
        const uint32_t changes = random.between(1, 3);
        for (uint32_t i = 0; i < changes; ++i) {
            uint8_t & byte = bytes[random.below(static_cast<uint32_t>(bytes.size()))];
            byte = random.chance(50) ? static_cast<uint8_t>(byte ^ (1u << random.below(8))) : static_cast<uint8_t>(random.below(256));
        }
        try {
            const Planner planner = static_cast<Planner>(random.below(5));
            const Policy policy = static_cast<Policy>(random.below(6));
            ByteReader reader(bytes.data(), bytes.size());
            History history = read_history(reader, mrope, kCells, settings(planner, policy));
            history.maintain(0);
            history.maintain(kCells / 2);
            if (history.free_cells() > 60) feed(history, random, 1);
            CHECK_EQ(violation(history.ledger().units(), mrope, UINT64_MAX, kMostPositions, kCells), "");
        } catch (const StateError &) {
            ++refused;
        }
    }
    CHECK(refused > 1000 && refused < 4000);
}
