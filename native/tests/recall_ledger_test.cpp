// Units that come back before all that are kept, and leave again.
#include "session/history.h"
#include "session/history_state.h"

#include "builders.h"
#include "check.h"
#include "ledger/violation.h"

using namespace ot;

namespace {

constexpr uint32_t kCells = 256;

HistorySettings settings(bool compact) {
    HistorySettings s;
    s.pick.high_watermark = 120;
    s.pick.low_watermark = 80;
    s.geometry = {16, 8, 32};
    s.page.planner = Planner::ClassPacking;
    s.compact_positions = compact;
    return s;
}

void add(History & history, UnitKind kind, std::vector<Span> spans) {
    uint32_t n = 0;
    for (const Span & span : spans) n += span.length;
    history.lay_out(spans);
    history.append(kind, std::move(spans), history.place(n), 1.0, 2.0);
}

std::vector<Span> second(Random & random) {
    const uint32_t width = random.between(2, 4);
    return {run(Role::Boundary, 1), run(Role::ImageSlice, width * random.between(1, 3), width), run(Role::Audio, random.between(1, 6)), run(Role::Boundary, 1)};
}

// A history that was cut, and the units that it was made of.
History pressed(bool mrope, bool compact, Random & random, std::vector<Unit> & all) {
    History history(mrope, kCells, settings(compact));
    add(history, UnitKind::System, {run(Role::System, 5)});
    for (int i = 0; i < 24; ++i) {
        add(history, UnitKind::Media, second(random));
        all.push_back(history.ledger().units().back());
        history.maintain(0);
    }
    return history;
}

std::vector<Unit> stored(const std::vector<Unit> & all, std::vector<size_t> which) {
    std::vector<Unit> units;
    for (const size_t i : which) {
        units.push_back(all[i]);
        units.back().cells.clear();
    }
    return units;
}

struct Token {
    Cell cell;
    Position t, y, x;
    bool operator==(const Token & o) const { return cell == o.cell && t == o.t && y == o.y && x == o.x; }
};

std::vector<Token> tokens_of(const Ledger & ledger, bool recalled) {
    std::vector<Token> tokens;
    for (const Unit & unit : ledger.units()) {
        if (unit.recalled != recalled) continue;
        const std::vector<TokenPosition> positions = token_positions(unit.spans, ledger.mrope());
        for (size_t i = 0; i < positions.size(); ++i) tokens.push_back({unit.cells[i], positions[i].t, positions[i].y, positions[i].x});
    }
    return tokens;
}

std::string violation_of(const History & history) {
    const Ledger & ledger = history.ledger();
    return violation(ledger.units(), ledger.mrope(), ledger.next_id(), ledger.next_position(), kCells);
}

}  // namespace

TEST(recalled_units_stand_behind_the_system_unit_and_leave_no_trace) {
    for (const bool mrope : {false, true}) {
        for (const bool compact : {false, true}) {
            Random random(7);
            std::vector<Unit> all;
            History history = pressed(mrope, compact, random, all);
            const History before = history;
            const Recollection in = history.recall(stored(all, {1, 4, 5}));
            CHECK_EQ(violation_of(history), std::string());
            CHECK_EQ(in.cells.size(), size_t{history.ledger().recalled_tokens()});
            CHECK_EQ(history.ledger().tokens(), before.ledger().tokens() + history.ledger().recalled_tokens());
            CHECK_EQ(history.ledger().units()[1].id, all[1].id);
            CHECK_EQ(history.ledger().units()[3].id, all[5].id);
            CHECK_EQ(history.ledger().units()[1].spans.front().base, Position{5});
            for (const Cell cell : in.cells) {
                CHECK(before.layout().at(cell) == CellClass::Free);
                CHECK(history.layout().at(cell) == CellClass::Recalled);
            }
            // Everything behind moves by as much as the units take, and nothing else changes.
            const Position added = history.ledger().next_position() - before.ledger().next_position();
            const std::vector<Token> kept = tokens_of(history.ledger(), false), old = tokens_of(before.ledger(), false);
            CHECK_EQ(kept.size(), old.size());
            for (size_t i = 5; i < kept.size(); ++i) CHECK((kept[i] == Token{old[i].cell, old[i].t + added, old[i].y + added, old[i].x + added}));
            CHECK_EQ(in.rows.size(), kept.size() - 5);
            for (const Row & row : in.rows) CHECK(row.src == row.dst && row.delta == added);

            const Recollection out = history.dismiss();
            CHECK_EQ(out.cells.size(), in.cells.size());
            CHECK(tokens_of(history.ledger(), false) == old);
            CHECK_EQ(history.ledger().next_position(), before.ledger().next_position());
            CHECK_EQ(history.ledger().max_rotations(), before.ledger().max_rotations());
            CHECK_EQ(history.layout().used(), before.layout().used());
            CHECK_EQ(history.head(), before.head());
            CHECK(history.dismiss().rows.empty());
        }
    }
}

TEST(what_came_after_recalled_units_follows_on_what_is_kept) {
    Random random(3);
    std::vector<Unit> all;
    History history = pressed(true, true, random, all);
    const Position next = history.ledger().next_position();
    history.recall(stored(all, {0}));
    add(history, UnitKind::Question, {run(Role::Text, 4)});
    history.dismiss();
    CHECK_EQ(history.ledger().units().back().spans.front().base, next);
    CHECK_EQ(history.ledger().units().back().spans.front().rotations, 1u);
    CHECK_EQ(history.ledger().next_position(), next + 4);
    CHECK_EQ(violation_of(history), std::string());
}

TEST(nothing_is_recalled_without_room) {
    Random random(5);
    std::vector<Unit> all;
    History history = pressed(true, true, random, all);
    add(history, UnitKind::Question, {run(Role::Text, history.free_cells() - 3)});
    const uint32_t tokens = history.ledger().tokens();
    CHECK(history.recall(stored(all, {0})).cells.empty());
    CHECK_EQ(history.ledger().tokens(), tokens);
    CHECK_EQ(history.ledger().recalled_tokens(), 0u);
}

TEST(recalled_units_are_saved_as_such) {
    Random random(9);
    std::vector<Unit> all;
    History history = pressed(true, true, random, all);
    history.recall(stored(all, {2, 3}));
    ByteWriter count(nullptr, 0);
    write_history(history, count);
    std::vector<uint8_t> bytes(count.size());
    ByteWriter writer(bytes.data(), bytes.size());
    write_history(history, writer);
    ByteReader reader(bytes.data(), bytes.size());
    History restored = read_history(reader, true, kCells, settings(true));
    CHECK_EQ(restored.ledger().recalled_tokens(), history.ledger().recalled_tokens());
    CHECK_EQ(text_of(restored.layout()), text_of(history.layout()));
    const Recollection out = restored.dismiss(), expected = history.dismiss();
    CHECK_EQ(out.cells.size(), expected.cells.size());
    CHECK(tokens_of(restored.ledger(), false) == tokens_of(history.ledger(), false));
}

TEST(recalled_units_have_their_place) {
    Random random(9);
    std::vector<Unit> all;
    History history = pressed(true, true, random, all);
    history.recall(stored(all, {2, 3}));
    const auto after = [&](auto change) {
        std::vector<Unit> units = history.ledger().units();
        change(units);
        return violation(units, true, history.ledger().next_id(), history.ledger().next_position(), kCells);
    };
    CHECK_EQ(after([](std::vector<Unit> &) {}), std::string());
    CHECK_EQ(after([](std::vector<Unit> & u) { u[4].recalled = true; u[3].recalled = false; }), std::string("the place of what was recalled"));
    CHECK_EQ(after([](std::vector<Unit> & u) { u[0].recalled = true; }), std::string("the place of what was recalled"));
    CHECK_EQ(after([](std::vector<Unit> & u) { std::swap(u[1].id, u[2].id); }), std::string("the order of units"));
}
