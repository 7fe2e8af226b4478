// OmniTide's native runtime: an endless audio-video-text history in a KV cache that stays small and compact.
//
//   ot_session * s;
//   ot_session_params p = ot_session_default_params();
//   if (ot_session_create(llama_ctx, mtmd_ctx, &p, &s) != OT_OK) puts(ot_last_error());
//   ot_unit_begin(s, OT_UNIT_MEDIA, 0.0, 1.0);
//   ot_unit_image(s, rgb, 112, 112);
//   ot_unit_audio(s, pcm, 16000, NULL, 0, NULL, 0);
//   ot_unit_commit(s, 0, &ingest);      // encode -> place -> prefill -> ledger
//   ot_session_maintain(s, 0, &report); // retention + relocation, when history > high watermark
//   ot_session_free(s);                 // before llama_free(llama_ctx)
//
// Threads: a session and its llama context belong to one thread at a time; only ot_session_interrupt may be called from
// another. Returns: OT_OK or an error code; then ot_last_error() says what happened (text of the calling thread, valid
// until its next failing call). A failed call leaves the session as it was unless it returns OT_ERR_BROKEN.
// Ownership: what ot_*_create returns is freed by ot_*_free; nothing else is handed over. Arrays that go in are copied.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OT_ABI_VERSION 2

enum ot_status {
    OT_OK = 0,
    OT_ERR_ARGUMENT = 1,     // the call is wrong: nothing was done
    OT_ERR_UNSUPPORTED = 2,  // this model, memory or build can't do it
    OT_ERR_NO_ROOM = 3,      // the cache has too few free cells: nothing was done
    OT_ERR_DECODE = 4,       // llama.cpp failed: the unit was taken back, the session is usable
    OT_ERR_ENCODE = 5,       // an encoder failed: the unit was taken back
    OT_ERR_INTERRUPTED = 6,  // ot_session_interrupt: the unit was taken back
    OT_ERR_BROKEN = 7,       // a failure left ledger and cache apart: the session must be restored or thrown away
    OT_ERR_STATE = 8         // what was to be restored is damaged or of another model: nothing was done
};

enum ot_role { OT_ROLE_BOUNDARY, OT_ROLE_IMAGE_SOURCE, OT_ROLE_IMAGE_SLICE, OT_ROLE_AUDIO, OT_ROLE_TEXT, OT_ROLE_RESPONSE, OT_ROLE_SYSTEM };
enum ot_unit_kind { OT_UNIT_SYSTEM, OT_UNIT_MEDIA, OT_UNIT_QUESTION, OT_UNIT_RESPONSE };
enum ot_policy { OT_POLICY_FULL, OT_POLICY_OMNIPICK, OT_POLICY_FIFO, OT_POLICY_TOKEN, OT_POLICY_STREAMING_LLM, OT_POLICY_H2O };
enum ot_planner { OT_PLANNER_NATIVE, OT_PLANNER_EAGER, OT_PLANNER_CLASS_PACKING, OT_PLANNER_ORDERED_SUFFIX, OT_PLANNER_AUTO, OT_PLANNER_HOLE_FILLING };
enum ot_positions { OT_POSITIONS_COMPACT, OT_POSITIONS_SPARSE };
enum ot_cell_class { OT_CELL_FREE, OT_CELL_MUST, OT_CELL_SELECTED, OT_CELL_RECENT };
enum ot_kernel { OT_KERNEL_TILED, OT_KERNEL_CELLS, OT_KERNEL_SPAN };

// --- library ---------------------------------------------------------------------------------------------------------

// OT_ABI_VERSION of the compiled library; the caller compares it with the header it was built against.
int ot_abi_version(void);

// Versions of the llama.cpp libraries this process has loaded, and those this library was built for.
const char * ot_llama_version(void);
const char * ot_ggml_version(void);
const char * ot_expected_llama_version(void);
const char * ot_expected_ggml_version(void);

// Text of the last failure in this thread; never NULL.
const char * ot_last_error(void);

// Keeps llama.cpp's log out of the terminal, for the whole process; only the first error line is kept.
void ot_log_take(void);
// The first error line since the last call, "" if there was none; valid until this thread's next call.
const char * ot_log_take_error(void);

// --- session ---------------------------------------------------------------------------------------------------------

typedef struct ot_session ot_session;

// What attention and moving cost, for OT_PLANNER_AUTO: microseconds over all layers, of which only the ratios count.
typedef struct ot_cost_model {
    int32_t kernel;        // OT_KERNEL_*: flash attention over f16 or f32, over other types, or none (and GPUs)
    double tile_us;        // a token of a batch of 64 or more, an active tile of 64 cells (TILED)
    double empty_tile_us;  // the same, a tile of the span without a used cell (TILED)
    double cell_us;        // a token of a smaller batch, of any batch for CELLS, a used cell
    double run_us;         // the same, a run of used cells without a hole
    double empty_cell_us;  // the same, an empty cell of the span
    double slice_cell_us;  // a decoded token, a used cell of the busiest thread's slice (TILED)
    double span_cell_us;   // a token, a cell of the span (SPAN)
    double key_row_us;     // moving a cell's keys, where no shift rewrites them anyway
    double value_row_us;   // moving a cell's values
} ot_cost_model;

typedef struct ot_session_params {
    uint32_t size;  // sizeof(ot_session_params)
    int32_t policy;
    uint32_t high_watermark;
    uint32_t low_watermark;
    uint32_t recent_units;  // 0: as many as fit the low watermark
    uint32_t image_sinks;
    uint32_t audio_sinks;
    uint32_t text_budget;
    uint32_t sinks;
    int32_t planner;
    uint32_t min_pages;
    int32_t positions;
    uint32_t page_size;
    uint32_t subblock_size;
    uint32_t span_align;
    int32_t threads;        // for the encoders; also those that auto expects to decode with
    int32_t stock_memory;   // 1: leave llama.cpp's memory as it is (policy full only)
    float temperature;      // 0: greedy
    uint32_t seed;
    uint32_t position_limit;  // positions the model was trained for (sparse positions close up before it); 0: no limit
    ot_cost_model cost;
} ot_session_params;

ot_session_params ot_session_default_params(void);

// Takes over the memory of `llama_context` (a struct llama_context *, empty, one sequence). `mtmd_context` may be NULL.
// Both must outlive the session, and the session must be freed before them.
int ot_session_create(void * llama_context, void * mtmd_context, const ot_session_params * params, ot_session ** out);
void ot_session_free(ot_session * s);

// Makes the pending unit or the current answer stop at the next opportunity (OT_ERR_INTERRUPTED / stop). Any thread, signal-safe.
void ot_session_interrupt(ot_session * s, int on);

// --- units: begin, parts in order, commit (or abandon) ---------------------------------------------------------------

typedef struct ot_ingest {
    uint64_t unit;  // its id
    uint32_t image_tokens, audio_tokens, text_tokens, boundary_tokens, total_tokens;
    double encode_ms, prefill_ms;
    uint32_t history_tokens;
} ot_ingest;

int ot_unit_begin(ot_session * s, int kind, double start_s, double end_s);
int ot_unit_tokens(ot_session * s, int role, const int32_t * tokens, size_t n);

// 8-bit RGB, row-major; encoded at once. Models that cut pictures (MiniCPM) add a source image, slices, and their marks
// as boundary; others one image. Writes the number of all these tokens if n_tokens is not NULL.
int ot_unit_image(ot_session * s, const uint8_t * rgb, uint32_t width, uint32_t height, uint32_t * n_tokens);

// Mono float samples at the encoder's rate, with real sound before and after where there is any (at most 320 and 200
// samples are used). Too short for one token: writes 0 tokens and adds nothing.
int ot_unit_audio(ot_session * s, const float * pcm, size_t n, const float * left, size_t n_left, const float * right, size_t n_right,
                  uint32_t * n_tokens);

// Rows of embeddings (n x n_embd) as an encoder gives them; `width` > 0: a raster, of which tokens [first, first + n)
// follow; continues: a later piece of the raster added before. For shared encodings, other encoders, and tests.
int ot_unit_rows(ot_session * s, int role, uint32_t width, uint32_t first, int continues, const float * rows, size_t n);

// Prefills the unit. want_logits: 1 for a unit that a generation follows.
int ot_unit_commit(ot_session * s, int want_logits, ot_ingest * out);
void ot_unit_abandon(ot_session * s);

// --- answers ---------------------------------------------------------------------------------------------------------

typedef struct ot_generated {
    int32_t token;    // -1 when the answer ended
    int32_t end;      // 1: the model ended it
    char piece[256];  // bytes of the token (not terminated, may be part of a character)
    int32_t piece_len;
} ot_generated;

// Starts a response unit. REQUIRES: the last commit wanted logits.
int ot_generate_begin(ot_session * s, double at_s);
// Samples one token and takes it into the history; at the end (ends with end = 1) takes nothing.
int ot_generate_next(ot_session * s, ot_generated * out);
// Closes the response unit with the template's tokens (boundary). Works after an interruption as well.
int ot_generate_end(ot_session * s, const int32_t * closing, size_t n, uint64_t * unit);

// --- maintenance -----------------------------------------------------------------------------------------------------

typedef struct ot_layout_stats {
    uint32_t useful_cells, active_pages, active_subblocks, page_span, physical_span, holes, largest_hole;
} ot_layout_stats;

typedef struct ot_maintenance {
    int32_t retained;  // 1: retention deleted something
    uint32_t before_tokens, after_tokens;
    uint32_t full_units, partial_units, dropped_units;
    double plan_ms;
    int32_t planned;   // 1: a migration was planned (after a retention)
    int32_t planner;   // OT_PLANNER_*, never AUTO
    int32_t accepted;
    const char * reason;
    uint32_t rows_moved, rows_shifted;
    uint64_t bytes;
    ot_layout_stats before, after;
    double migrate_ms;
} ot_maintenance;

// Retention and relocation when the history is above the high watermark, or above `limit` tokens if limit > 0 and lower.
int ot_session_maintain(ot_session * s, uint32_t limit, ot_maintenance * out);
// The oldest round, not told yet, that a unit or an answer needed for its room; retained = 0 when there is none.
int ot_session_take_forced(ot_session * s, ot_maintenance * out);

// --- saving ----------------------------------------------------------------------------------------------------------

// Writes the session: ledger, cells, cached rows and what is needed to rotate them exactly. `out` may be NULL to ask for
// the size. REQUIRES: no unfinished unit or answer. OT_ERR_UNSUPPORTED on llama.cpp's own memory.
int ot_session_save(const ot_session * s, void * out, size_t cap, size_t * size);
// Takes a saved session in place of what there is, every token in its cell; the next update computes what it would have
// computed in the session that was saved. Policy, watermarks, layout, positions and flash attention may differ, the cache
// may be larger; model and cache type may not (OT_ERR_STATE). The bytes may come from anyone.
int ot_session_restore(ot_session * s, const void * data, size_t size);

// --- looking inside --------------------------------------------------------------------------------------------------

typedef struct ot_snapshot {
    uint32_t history_tokens, next_position, n_cells, free_cells, n_units, max_rotations;
    uint32_t must_cells, selected_cells, recent_cells;
    uint64_t kv_bytes_allocated, kv_bytes_per_cell;
    int32_t mrope, transposed_v, has_vision, has_audio;
    ot_layout_stats layout;
} ot_snapshot;

typedef struct ot_unit_info {
    uint64_t id;
    int32_t kind, partial;
    uint32_t tokens, n_spans;
    double start_s, end_s;
} ot_unit_info;

typedef struct ot_span_info {
    int32_t role, continues;
    uint32_t length, first, width, rotations;
    int32_t base;
} ot_span_info;

typedef struct ot_token_info {
    uint32_t cell;
    int32_t t, y, x;
} ot_token_info;

int ot_session_snapshot(const ot_session * s, ot_snapshot * out);
// Each fills at most `cap` entries and returns how many there are.
size_t ot_session_cells(const ot_session * s, uint8_t * classes, size_t cap);
size_t ot_session_units(const ot_session * s, ot_unit_info * out, size_t cap);
size_t ot_session_spans(const ot_session * s, ot_span_info * out, size_t cap);
size_t ot_session_tokens(const ot_session * s, ot_token_info * out, size_t cap);
// Attention that each token has received from all heads of all layers, in history order; counted for OT_POLICY_H2O alone.
size_t ot_session_scores(const ot_session * s, double * out, size_t cap);

// Compares the ledger with llama.cpp's cells; OT_OK when they agree.
int ot_session_check(const ot_session * s);

// Logits after the newest token that wanted them (n_vocab floats), and one cell's key row of one layer as floats.
int ot_session_logits(ot_session * s, float * out, size_t cap);
size_t ot_session_key_width(const ot_session * s, uint32_t layer);
int ot_session_key(ot_session * s, uint32_t layer, uint32_t cell, float * out, size_t cap);

// A span that is added, or would be; width > 0: a raster (images alone).
typedef struct ot_part {
    int32_t role;
    uint32_t length, width;
} ot_part;

// What the encoders give, without touching the history: rows of n_embd floats. An image's spans, its tokens (-1: a row)
// and its rows, each in order; there is room for a row a token. Sound's rows may be NULL to ask for the count.
int ot_encode_image(ot_session * s, const uint8_t * rgb, uint32_t width, uint32_t height, ot_part * parts, size_t cap_parts, size_t * n_parts,
                    int32_t * tokens, float * rows, size_t cap_tokens, size_t * n_tokens);
int ot_encode_audio(ot_session * s, const float * pcm, size_t n, const float * left, size_t n_left, const float * right, size_t n_right,
                    float * rows, size_t cap_rows, uint32_t * n_rows);
// Log-mel spectrogram of the window: n_mel rows of n_frames.
int ot_mel(const float * pcm, size_t n, const float * left, size_t n_left, const float * right, size_t n_right, uint32_t n_mel, float * out,
           size_t cap, uint32_t * n_frames);

// --- for benchmarks: long histories in no time, and one update measured again and again -------------------------------

// Fills all rows of the cache with random keys and values, used or not.
int ot_cache_fill(ot_session * s, uint32_t seed);
// Takes the pending unit into the history without running the model, on whatever rows its cells hold: into `cells` (one
// a token, distinct and empty), or where placement says when that is NULL.
int ot_unit_inject(ot_session * s, const uint32_t * cells, size_t n);
// Takes the history that ot_history_save gave in place of what there is, on whatever rows its cells hold.
int ot_session_inject(ot_session * s, const void * data, size_t size);
// Prefills the pending unit, says how long that took, and takes it back. `attention_ms` receives how long attention took of
// it: the keys' product to attention's output, all layers; it costs two pauses a layer. `logits` (n_vocab floats) receives
// those after its last token. NULL: not wanted.
int ot_unit_dry_run(ot_session * s, double * ms, double * attention_ms, float * logits, size_t cap);

// --- a history without a model: what a session's history would do, for simulation and tests --------------------------

typedef struct ot_history ot_history;

// A survivor of the last maintenance that moved (src != dst), was shifted (delta != 0), or both.
typedef struct ot_row {
    uint32_t src, dst;
    int32_t delta;
} ot_row;

// Takes of the parameters what a history has: policy, watermarks, layout, positions, pages, costs.
int ot_history_create(const ot_session_params * params, uint32_t n_cells, int mrope, ot_history ** out);
void ot_history_free(ot_history * h);

// Adds a unit of one or more non-empty spans. OT_ERR_NO_ROOM: maintain with a limit first.
int ot_history_append(ot_history * h, int kind, const ot_part * parts, size_t n, double start_s, double end_s, uint64_t * unit);
// Adds n tokens of `role` (no image) to the newest unit, one by one as an answer grows.
int ot_history_grow(ot_history * h, int role, uint32_t n);

// Attention that each token receives besides what it has received so far: n = its tokens, in history order.
int ot_history_attend(ot_history * h, const double * scores, size_t n);

// As ot_session_maintain; bytes and migrate_ms stay 0.
int ot_history_maintain(ot_history * h, uint32_t limit, ot_maintenance * out);
// What the last maintenance did, in full. Each fills at most `cap` entries and returns how many there are.
size_t ot_history_rows(const ot_history * h, ot_row * out, size_t cap);
size_t ot_history_freed(const ot_history * h, uint32_t * cells, size_t cap);  // deleted tokens' cells, ascending

// As those of a session, without rows.
int ot_history_save(const ot_history * h, void * out, size_t cap, size_t * size);
int ot_history_restore(ot_history * h, const void * data, size_t size);
// Takes the history of what a session has saved, and ignores its rows.
int ot_history_restore_session(ot_history * h, const void * data, size_t size);

// As those of a session.
int ot_history_snapshot(const ot_history * h, ot_snapshot * out);
size_t ot_history_cells(const ot_history * h, uint8_t * classes, size_t cap);
size_t ot_history_units(const ot_history * h, ot_unit_info * out, size_t cap);
size_t ot_history_spans(const ot_history * h, ot_span_info * out, size_t cap);
size_t ot_history_tokens(const ot_history * h, ot_token_info * out, size_t cap);
size_t ot_history_scores(const ot_history * h, double * out, size_t cap);

#ifdef __cplusplus
}
#endif
