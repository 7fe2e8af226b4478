// The ledger against a list of single tokens that has no spans, no extents and no shortcuts.
#include "builders.h"
#include "check.h"

#include <map>
#include <set>

namespace ot {

namespace {

struct Token {
    uint64_t unit;
    uint32_t image;  // number of its original span
    Role role;
    uint32_t width, index;  // raster
    TokenPosition at;
    Cell cell;
};

class TokenList {
public:
    explicit TokenList(bool mrope) : mrope_(mrope) {}

    void append(uint64_t unit, const std::vector<Span> & spans, const std::vector<Cell> & cells) {
        size_t cell = 0;
        for (const Span & span : spans) {
            images_ += 1;
            for (uint32_t i = 0; i < span.length; ++i) {
                tokens.push_back({unit, images_, span.role, span.width, i, {}, cells[cell++]});
            }
            next = number(tokens.size() - span.length, next);
        }
    }

    void renumber() { next = number(0, 0); }

    std::vector<Token> tokens;
    std::set<uint64_t> partial;  // units that have lost a token
    Position next = 0;

private:
    // Gives positions to the tokens from `start` on; returns the first free one.
    Position number(size_t start, Position cursor) {
        Position base = cursor;
        uint32_t image = 0;
        for (size_t i = start; i < tokens.size(); ++i) {
            Token & token = tokens[i];
            if (token.image != image) base = cursor;
            image = token.image;
            if (mrope_ && token.width != 0) {
                const auto y = static_cast<Position>(token.index / token.width);
                const auto x = static_cast<Position>(token.index % token.width);
                token.at = {base, base + y, base + x};
                cursor = std::max({cursor, base + y + 1, base + x + 1});
            } else {
                token.at = {cursor, cursor, cursor};
                cursor += 1;
            }
        }
        return cursor;
    }

    bool mrope_;
    uint32_t images_ = 0;
};

std::vector<Span> random_spans(Random & random) {
    std::vector<Span> spans;
    for (uint32_t n = random.between(1, 5); n > 0; --n) {
        Span span = run(static_cast<Role>(random.below(6)), random.between(1, 20));
        if (is_image(span.role) && random.chance(80)) span.width = random.between(1, 8);
        spans.push_back(span);
    }
    return spans;
}

void check_equal(const Ledger & ledger, const TokenList & list) {
    size_t n = 0;
    for (const Unit & unit : ledger.units()) {
        uint32_t start = 0;
        CHECK_EQ(unit.partial, list.partial.count(unit.id) != 0);
        CHECK(unit.spans.empty() || !unit.spans.front().continues);
        for (const Span & span : unit.spans) {
            CHECK(span.length > 0);
            for (uint32_t i = 0; i < span.length && n < list.tokens.size(); ++i, ++n) {
                const Token & token = list.tokens[n];
                const TokenPosition p = token_position(span, i, ledger.mrope());
                CHECK_EQ(unit.id, token.unit);
                CHECK(span.role == token.role);
                CHECK_EQ(unit.cells[start + i], token.cell);
                CHECK_EQ(p.t, token.at.t);
                CHECK_EQ(p.y, token.at.y);
                CHECK_EQ(p.x, token.at.x);
                if (span.width != 0) CHECK_EQ(span.first + i, token.index);
            }
            start += span.length;
        }
        CHECK_EQ(start, unit.tokens());
    }
    CHECK_EQ(n, list.tokens.size());
    CHECK_EQ(ledger.tokens(), list.tokens.size());
    CHECK_EQ(ledger.next_position(), list.next);
}

void check_shifts(const std::vector<Shift> & shifts, const std::vector<Token> & before, const std::vector<Token> & after) {
    std::map<Cell, TokenPosition> old;
    for (const Token & token : before) old[token.cell] = token.at;
    size_t n = 0;
    for (const Token & token : after) {
        const TokenPosition was = old[token.cell];
        CHECK_EQ(token.at.t - was.t, token.at.y - was.y);
        CHECK_EQ(token.at.t - was.t, token.at.x - was.x);
        if (token.at.t == was.t) continue;
        if (n >= shifts.size()) return CHECK(false);
        CHECK_EQ(shifts[n].cell, token.cell);
        CHECK_EQ(shifts[n].delta, token.at.t - was.t);
        n += 1;
    }
    CHECK_EQ(n, shifts.size());
}

struct Run {
    Run(bool mrope, bool sparse, uint32_t seed) : ledger(mrope), list(mrope), random(seed), sparse_(sparse) {}

    void add() {
        std::vector<Span> spans = random_spans(random);
        std::vector<Cell> cells;
        for (const Span & span : spans) {
            for (uint32_t i = 0; i < span.length; ++i) cells.push_back(cell_ += random.between(1, 3));
        }
        const Position end = ledger.lay_out(spans);
        const uint64_t id = ledger.append(UnitKind::Media, spans, cells, 0, 1);
        CHECK_EQ(ledger.next_position(), end);
        list.append(id, spans, cells);
    }

    void extend() {
        if (ledger.units().empty() || ledger.units().back().spans.back().width != 0) return;
        const Unit & unit = ledger.units().back();
        Token token = list.tokens.back();
        token.index += 1;
        token.cell = cell_ += 1;
        token.at = {list.next, list.next, list.next};
        list.next += 1;
        ledger.extend_last(token.cell);
        CHECK_EQ(unit.cells.back(), token.cell);
        list.tokens.push_back(token);
    }

    void cut() {
        const std::vector<Token> before = list.tokens;
        std::vector<UnitCut> cuts;
        std::set<Cell> gone;
        for (uint32_t u = 0; u < ledger.units().size(); ++u) {
            if (random.chance(40)) continue;
            const Unit & unit = ledger.units()[u];
            UnitCut c{u, {}};
            uint32_t start = 0;
            for (uint32_t s = 0; s < unit.spans.size(); ++s) {
                const uint32_t length = unit.spans[s].length;
                uint32_t begin = random.below(length + 1);
                uint32_t kept_to = 0;
                for (int part = 0; part < 2 && begin < length && random.chance(70); ++part) {
                    const uint32_t end = random.between(begin, length);
                    for (uint32_t i = kept_to; i < begin; ++i) gone.insert(unit.cells[start + i]);
                    c.keep.push_back({s, begin, end});
                    kept_to = end;
                    begin = random.between(end, length);
                }
                for (uint32_t i = kept_to; i < length; ++i) gone.insert(unit.cells[start + i]);
                start += length;
            }
            cuts.push_back(c);
        }
        const CutResult result = ledger.cut(cuts, !sparse_);
        CHECK(result.freed == std::vector<Cell>(gone.begin(), gone.end()));
        auto & tokens = list.tokens;
        for (const Token & token : tokens) {
            if (gone.count(token.cell)) list.partial.insert(token.unit);
        }
        tokens.erase(std::remove_if(tokens.begin(), tokens.end(), [&](const Token & t) { return gone.count(t.cell); }),
                     tokens.end());
        if (!sparse_) list.renumber();
        check_shifts(result.shifts, before, list.tokens);
    }

    void close_gaps() {
        const std::vector<Token> before = list.tokens;
        list.renumber();
        check_shifts(ledger.close_gaps(), before, list.tokens);
    }

    void relocate() {
        std::vector<Cell> from, to;
        for (Token & token : list.tokens) {
            if (random.chance(50)) from.push_back(token.cell);
        }
        to = from;
        std::rotate(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(to.size() / 2), to.end());
        std::map<Cell, Cell> target;
        for (size_t i = 0; i < from.size(); ++i) target[from[i]] = to[i];
        for (Token & token : list.tokens) {
            if (target.count(token.cell)) token.cell = target[token.cell];
        }
        ledger.move_cells(from, to);
    }

    Ledger ledger;
    TokenList list;
    Random random;

private:
    bool sparse_;
    Cell cell_ = 0;
};

}  // namespace

TEST(random_histories_equal_a_list_of_tokens) {
    for (uint32_t seed = 0; seed < 400; ++seed) {
        Run r(seed % 2 == 0, seed % 4 >= 2, seed);
        for (int step = 0; step < 30 && !check::failed(); ++step) {
            const uint32_t dice = r.random.below(10);
            if (dice < 4) r.add();
            else if (dice < 6) r.extend();
            else if (dice < 8) r.cut();
            else if (dice < 9) r.relocate();
            else r.close_gaps();
            check_equal(r.ledger, r.list);
        }
    }
}

}  // namespace ot
