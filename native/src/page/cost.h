// What a layout costs: attention over it until the next retention, and moving rows to get there. docs/omnipage.md,
// "What attention costs"; section 6.2 of the paper checks page counts alone, which on a CPU is one case of four.
//
// Times are microseconds over all layers. Only their ratios decide a plan, so a model measured on another shape still
// chooses well; `ot_cost_model` of the C API sets a measured one.
#pragma once

#include "ledger/ledger.h"
#include "page/page.h"

#include <cstdint>
#include <vector>

namespace ot {

inline constexpr uint32_t kTile = 64;         // cells of the backend's attention tile
inline constexpr uint32_t kTiledTokens = 64;  // a smaller batch takes the kernel without tiles

// How the backend walks the cache. The values are part of the C API (OT_KERNEL_*).
enum class Kernel : uint8_t {
    Tiled,  // flash attention, f16 or f32 keys and values: empty tiles are skipped in large batches, empty cells else
    Cells,  // flash attention, other types: empty cells are skipped in every batch, and threads share heads, not cells
    Span,   // no flash attention, or a GPU: every cell of the span costs
};

// Defaults: 6 layers of a 3B shape on 2 cores, f16 (q8_0 keys cost about 3.2 a cell).
struct CostModel {
    Kernel kernel = Kernel::Tiled;
    uint32_t threads = 2;
    double tile_us = 30.0;        // one token of a large batch, one active tile
    double empty_tile_us = 3.0;   // one token of a large batch, one empty tile of the span: its mask is read
    double cell_us = 1.9;         // one token of a small batch, one used cell
    double run_us = 0.3;          // one token of a small batch, one run of used cells: a hole ends what was predicted
    double empty_cell_us = 0.1;   // one token of a small batch, one empty cell of the span: its mask is read
    double slice_cell_us = 3.8;   // one decoded token, one used cell of the busiest thread's slice
    double span_cell_us = 0.46;   // one token, one cell of the span
    double key_row_us = 1.1;      // moving one cell's keys; nothing if they are shifted anyway
    double value_row_us = 1.1;    // moving one cell's values
};

// Tokens that will meet the cache, by the kernel that they take.
struct Work {
    double large = 0;    // in batches of kTiledTokens or more
    double small = 0;    // in smaller batches
    double decoded = 0;  // one by one

    double total() const { return large + small + decoded; }
};

// What is expected to come before the next retention: `tokens` more, mixed as the whole units of the ledger are.
Work expected_work(const Ledger & ledger, uint32_t tokens);

// Attention of `work` over one layout.
double attention_us(const CostModel & cost, const Layout & layout, const Work & work);

// Rows that have to be moved; `shifted` says of every cell whether its keys are rewritten anyway.
double moving_us(const CostModel & cost, const std::vector<Move> & moves, const std::vector<bool> & shifted);

}  // namespace ot
