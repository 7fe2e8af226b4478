#include "page/cost.h"

#include <algorithm>

namespace ot {

namespace {

uint32_t tiles_of(uint32_t span) { return (span + kTile - 1) / kTile; }

// Used cells, as each kernel counts them.
struct Counts {
    uint32_t tiles = 0;    // with a used cell
    uint32_t runs = 0;     // of used cells
    uint32_t busiest = 0;  // used cells of the fullest of `threads` equal slices of the span
};

Counts count(const Layout & layout, uint32_t span, uint32_t threads) {
    Counts counts;
    const uint32_t slices = std::max(1u, threads);
    const uint32_t slice = std::max(1u, (span + slices - 1) / slices);
    uint32_t tiles_seen = 0;  // the last active tile + 1
    uint32_t in_slice = 0;
    Cell run_end = span;  // the last used cell + 1; none yet
    Cell next_slice = slice;
    for (Cell cell = 0; cell < span; ++cell) {
        if (cell == next_slice) {
            in_slice = 0;
            next_slice += slice;
        }
        if (layout.at(cell) == CellClass::Free) continue;
        counts.busiest = std::max(counts.busiest, ++in_slice);
        const uint32_t tile = cell / kTile + 1;
        counts.runs += cell != run_end;
        run_end = cell + 1;
        counts.tiles += tile != tiles_seen;
        tiles_seen = tile;
    }
    return counts;
}

}  // namespace

Work expected_work(const Ledger & ledger, uint32_t tokens) {
    Work seen;
    for (const Unit & unit : ledger.units()) {
        if (unit.kind == UnitKind::System || unit.partial) continue;
        double & kind = unit.kind == UnitKind::Response ? seen.decoded : unit.tokens() >= kTiledTokens ? seen.large : seen.small;
        kind += unit.tokens();
    }
    if (seen.total() == 0) return {static_cast<double>(tokens), 0, 0};
    const double scale = tokens / seen.total();
    return {seen.large * scale, seen.small * scale, seen.decoded * scale};
}

double attention_us(const CostModel & cost, const Layout & layout, const Work & work) {
    const uint32_t span = physical_span(layout.end(), layout.size(), layout.geometry());
    if (cost.kernel == Kernel::Span) return work.total() * cost.span_cell_us * span;
    const Counts counts = count(layout, span, cost.threads);
    const double small = cost.cell_us * layout.used() + cost.run_us * counts.runs + cost.empty_cell_us * (span - layout.used());
    if (cost.kernel == Kernel::Cells) return work.total() * small;
    const double large = cost.tile_us * counts.tiles + cost.empty_tile_us * (tiles_of(span) - counts.tiles);
    return work.large * large + work.small * small + work.decoded * cost.slice_cell_us * counts.busiest;
}

double moving_us(const CostModel & cost, const std::vector<Move> & moves, const std::vector<bool> & shifted) {
    double total = 0;
    for (const Move & move : moves) total += cost.value_row_us + (shifted[move.src] ? 0 : cost.key_row_us);
    return total;
}

}  // namespace ot
