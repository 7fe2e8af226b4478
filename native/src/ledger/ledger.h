// The ledger: what the history consists of, and where it lies.
//
// Invariants:
//   - units are in stream order; unit 0 is the system unit when there is one;
//   - inside a unit, spans are in token order, none is empty, and their lengths add up to cells.size();
//   - no cell occurs twice;
//   - units that were recalled stand together, before all others but the system unit;
//   - a unit has a score for each of its tokens, or for none;
//   - a span keeps its role and its raster origin when it is shortened, so the next retention still knows what it is;
//   - positions never decrease along the history.
//
// Pure: knows nothing of llama.cpp. Single-threaded, like everything below the session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ot {

using Cell = uint32_t;
using Position = int32_t;

inline constexpr Cell kNoCell = UINT32_MAX;

// What a run of tokens is. The values are part of the C API (OT_ROLE_*).
enum class Role : uint8_t { Boundary, ImageSource, ImageSlice, Audio, Text, Response, System };

// What event a unit records. The values are part of the C API (OT_UNIT_*).
enum class UnitKind : uint8_t { System, Media, Question, Response };

bool is_image(Role role);

// A run of tokens of one role. An image is a raster, `width` tokens a row; after retention only raster tokens
// [first, first + length) are left of it. width == 0: not a raster, every token takes one position.
// A retention that keeps two ranges of a span leaves two spans, the second marked `continues`; when the first goes,
// the second leads. Under M-RoPE pieces of one raster share `base`.
struct Span {
    Role role = Role::Boundary;
    uint32_t length = 0;
    uint32_t first = 0;      // index, in the span as it was added, of the first token left
    uint32_t width = 0;      // tokens a raster row, 0 = no raster
    bool continues = false;  // a later piece of the span before, in the same unit
    Position base = 0;       // raster under M-RoPE: the t of all its tokens, and the x, y of raster index 0 (left or not);
                             // else the position of the first token left
    uint32_t rotations = 0;  // how often the cached keys of this span were re-rotated
};

struct Unit {
    uint64_t id = 0;  // stable over the session, ascending
    UnitKind kind = UnitKind::Media;
    bool partial = false;  // has lost a token
    bool recalled = false;  // was put back from what had been cut; the unit's own id, which a part of it may still have
    double start_s = 0;    // media clock
    double end_s = 0;
    std::vector<Span> spans;
    std::vector<Cell> cells;  // one a token, in token order
    std::vector<double> scores;  // attention that each token has received, where it is counted (h2o); else empty

    uint32_t tokens() const { return static_cast<uint32_t>(cells.size()); }
};

// A token's place in M-RoPE space: raster tokens share t and take rows and columns; all others have t = y = x.
struct TokenPosition {
    Position t, y, x;
};

// Number of positions that a run of raster tokens [first, first + length) reaches from its base:
// 1 + the largest row or column in it. width == 0: `length`.
uint32_t extent(uint32_t width, uint32_t first, uint32_t length);

// Position of token `offset` (counted from the span's first token left) of `span`.
TokenPosition token_position(const Span & span, uint32_t offset, bool mrope);

// Those of every token of spans that were laid out, in token order.
std::vector<TokenPosition> token_positions(const std::vector<Span> & spans, bool mrope);

// How a retention plan names what is kept: tokens [begin, end) of span `span` of a unit, ascending.
struct KeepRange {
    uint32_t span, begin, end;
};

// What becomes of one unit. keep is empty when the unit is dropped.
struct UnitCut {
    uint32_t unit = 0;  // index into Ledger::units()
    std::vector<KeepRange> keep;
};

// A survivor whose position changes.
struct Shift {
    Cell cell;
    Position delta;
};

struct CutResult {
    std::vector<Cell> freed;    // ascending
    std::vector<Shift> shifts;  // in history order; empty when positions stay sparse
};

class Ledger {
public:
    // mrope: raster tokens share a position (else every token takes one).
    explicit Ledger(bool mrope) : mrope_(mrope) {}

    // Takes a saved one up again. REQUIRES: the invariants above (violation.h says whether they hold).
    Ledger(bool mrope, std::vector<Unit> units, uint64_t next_id, Position next_position);

    const std::vector<Unit> & units() const { return units_; }
    uint32_t tokens() const { return tokens_; }
    bool mrope() const { return mrope_; }
    uint64_t next_id() const { return next_id_; }

    // The first free position after the history.
    Position next_position() const { return next_position_; }

    // Where the spans of a unit about to be added would lie: fills in each span's base, returns the position after them.
    Position lay_out(std::vector<Span> & spans) const;

    // Adds a unit whose spans were laid out and whose tokens lie in `cells`. Returns the unit's id.
    // REQUIRES: cells.size() = sum of span lengths; no span is empty; the first span doesn't continue another.
    uint64_t append(UnitKind kind, std::vector<Span> spans, std::vector<Cell> cells, double start_s, double end_s);

    // Adds one more token, at next_position(), to the last span of the newest unit (an answer as it grows).
    // REQUIRES: that unit has a span, and its last one is not a raster.
    void extend_last(Cell cell);

    // Starts a new span of `role` at the end of the newest unit (the template part that closes an answer).
    // REQUIRES: there is a unit; `cells` is not empty.
    void add_span(Role role, std::vector<Cell> cells);

    // Removes what `cuts` does not keep (units not named stay whole; ascending, once each), renumbers positions when
    // `compact`, and forgets empty units. Section 5.2 of the paper. When not `compact`, every token keeps its position
    // (a span that loses its beginning gets a later base) and so does next_position(): gaps stay until close_gaps().
    CutResult cut(const std::vector<UnitCut> & cuts, bool compact);

    // Closes all position gaps at once without deleting anything (sparse positions that come near the model's window).
    std::vector<Shift> close_gaps();

    // Puts units back between the system unit and all others: gives their spans positions behind the system unit's, and
    // everything behind them theirs. Returns the shifts of what stood there before; those of the units are up to the
    // caller, who knows which positions their rows have. Works on compact and on sparse positions.
    // REQUIRES: recalled_tokens() = 0; as append() for each unit; ids below next_id(), ascending.
    std::vector<Shift> insert_recalled(std::vector<Unit> units);

    // Takes all of them out again; everything behind has the positions that it would have had without them.
    CutResult remove_recalled();

    uint32_t recalled_tokens() const;

    // Replaces cells after a relocation: every token that lay in from[i] now lies in to[i].
    void move_cells(const std::vector<Cell> & from, const std::vector<Cell> & to);

    // Adds the attention that cells have received; of cells that no token lies in, nothing is kept.
    void attend(const std::vector<double> & by_cell);

    // The largest number of re-rotations that any retained span has gone through.
    uint32_t max_rotations() const;

private:
    bool mrope_;
    std::vector<Unit> units_;
    uint64_t next_id_ = 0;
    uint32_t tokens_ = 0;
    Position next_position_ = 0;
};

}  // namespace ot
