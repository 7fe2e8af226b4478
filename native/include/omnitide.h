// OmniTide's native runtime: an endless audio-video-text history in a KV cache that stays small and compact.
//
// One second of picture and sound (tests/unit/test_header.py compiles this block):
//
//   static int watch_one_second(void * llama_ctx, void * mtmd_ctx, const uint8_t * rgb, const float * pcm) {
//       ot_session * s = NULL;
//       ot_ingest ingest;
//       ot_maintenance report;
//       ot_session_params p = ot_session_default_params();
//       if (ot_session_create(llama_ctx, mtmd_ctx, &p, &s) != OT_OK) {
//           puts(ot_last_error());
//           return 1;
//       }
//       ot_unit_begin(s, OT_UNIT_MEDIA, 0.0, 1.0);
//       ot_unit_image(s, rgb, 112, 112, NULL);
//       ot_unit_audio(s, pcm, 16000, NULL, 0, NULL, 0, NULL);
//       int status = ot_unit_commit(s, 0, &ingest);                       // place -> prefill -> ledger
//       if (status == OT_OK) status = ot_session_maintain(s, 0, &report);  // retention and relocation, above the high watermark
//       if (status != OT_OK) puts(ot_last_error());
//       ot_session_free(s);  // before llama_free(llama_ctx)
//       return status;
//   }
//
// The way of a frame: docs/architecture.md. Words: docs/glossary.md. What OT_ERR_UNSUPPORTED refuses: docs/runtime.md.
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

#define OT_ABI_VERSION 7

enum ot_status {
    OT_OK = 0,
    OT_ERR_ARGUMENT = 1,     // the call is wrong: nothing was done
    OT_ERR_UNSUPPORTED = 2,  // this model, memory or build can't do it
    OT_ERR_NO_ROOM = 3,      // too few free cells, or positions: the unit was taken back; a forced round may have run
    OT_ERR_DECODE = 4,       // llama.cpp failed, or memory ran out: the unit was taken back, the session is usable
    OT_ERR_ENCODE = 5,       // an encoder failed: the unit was taken back, with all its parts
    OT_ERR_INTERRUPTED = 6,  // ot_session_interrupt: the unit was taken back
    OT_ERR_BROKEN = 7,       // a failure left ledger and cache apart: the session must be restored or thrown away
    OT_ERR_STATE = 8,        // what was to be restored is damaged or of another model: nothing was done
    OT_ERR_POLICY = 9        // the caller's own policy gave up, or let go what must stay: nothing was done
};

// What a token is, what a unit records, and how history is chosen, laid out and numbered: docs/omnipick.md, docs/omnipage.md.
enum ot_role { OT_ROLE_BOUNDARY, OT_ROLE_IMAGE_SOURCE, OT_ROLE_IMAGE_SLICE, OT_ROLE_AUDIO, OT_ROLE_TEXT, OT_ROLE_RESPONSE, OT_ROLE_SYSTEM };
enum ot_unit_kind { OT_UNIT_SYSTEM, OT_UNIT_MEDIA, OT_UNIT_QUESTION, OT_UNIT_RESPONSE };
enum ot_positions { OT_POSITIONS_COMPACT, OT_POSITIONS_SPARSE };
enum ot_cell_class { OT_CELL_FREE, OT_CELL_MUST, OT_CELL_SELECTED, OT_CELL_RECENT, OT_CELL_RECALLED };
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

// Retention policies and layout planners by the names of --policy and --layout, with underscores for dashes; -1: unknown.
int32_t ot_policy(const char * name);
int32_t ot_planner(const char * name);
// The other way round; NULL: unknown.
const char * ot_policy_name(int32_t policy);
const char * ot_planner_name(int32_t planner);

// --- encoders --------------------------------------------------------------------------------------------------------

enum ot_frames { OT_FRAMES_NONE, OT_FRAMES_FIXED, OT_FRAMES_PATCHES, OT_FRAMES_SLICES, OT_FRAMES_UNKNOWN };

// What an mmproj file says of its encoders.
typedef struct ot_encoders {
    uint32_t size;          // bytes: sizeof(ot_encoders), a check that caller and library agree
    char vision[48];        // libmtmd's name of what encodes pictures, "" without one
    int32_t frames;         // OT_FRAMES_*: none; always side x side; the picture's own ratio; cut into slices; or cut as isn't known
    uint32_t side;          // pixels of a side (FIXED, SLICES)
    uint32_t multiple;      // pixels of a token's side (PATCHES)
    uint32_t min_tokens;    // the fewest of a picture
    uint32_t max_tokens;    // the most of a picture
    uint32_t slice_tokens;  // of the source image, and of each slice (SLICES)
    int32_t ends_rows;      // 1: each row of a picture's tokens has one more at its end
    char audio[48];         // libmtmd's name of what encodes sound, "" without one
    int32_t sound;          // the kind of sound encoder, as in ot_audio_format; -1: none here
    uint32_t sound_tokens;  // tokens that a second of sound gives; 0: it can't be heard here
    uint32_t n_embd;        // floats in a row of embeddings
} ot_encoders;

// Reads them from an mmproj file without loading a weight; llama.cpp's backends must be there. OT_ERR_UNSUPPORTED: it has none.
int ot_encoders_read(const char * mmproj, ot_encoders * out);

// --- session ---------------------------------------------------------------------------------------------------------

typedef struct ot_session ot_session;

// What attention and moving cost, for the planner auto: microseconds over all layers, of which only the ratios count.
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

// A setting of a policy or a planner. Those that aren't given have their defaults.
typedef struct ot_knob {
    const char * name;  // of its flag, with underscores for dashes
    double value;       // whole where the setting counts something
} ot_knob;

// A policy of the caller's own: sets keep[i] of each of the n tokens, in history order, that stay (they come as 0), and
// returns 0; anything else gives up (OT_ERR_POLICY). The system unit and the newest token must stay. It may look inside
// the session meanwhile, and change nothing.
typedef int (*ot_retain)(void * data, uint32_t high_watermark, uint32_t low_watermark, uint8_t * keep, size_t n);

typedef struct ot_session_params {
    uint32_t size;            // bytes: sizeof(ot_session_params), a check that caller and library agree
    int32_t policy;           // ot_policy(name): which tokens stay; of no effect beside `retain`
    uint32_t high_watermark;  // tokens of history above which retention starts
    uint32_t low_watermark;   // tokens it aims at; 0 < low < high
    int32_t planner;          // ot_planner(name): what moves after a retention, and where new tokens go
    const ot_knob * knobs;    // settings of policies and planners, read while the session is created
    size_t n_knobs;           // how many
    ot_retain retain;         // NULL: `policy` decides
    void * retain_data;       // handed to `retain`; must outlive the session
    int32_t retain_reads_attention;  // 1: `retain` takes ot_session_scores, so they are counted
    int32_t positions;        // OT_POSITIONS_*: kept tokens are renumbered without gaps, or keep their positions
    uint32_t page_size;       // cells of a page
    uint32_t subblock_size;   // cells of a subblock; divides page_size
    uint32_t span_align;      // cells to which the backend rounds the span that attention reads
    int32_t threads;          // for the encoders; also those that auto expects to decode with
    int32_t stock_memory;     // 1: leave llama.cpp's memory as it is (policy full only)
    float temperature;        // of sampling; 0: greedy
    uint32_t seed;            // of sampling at temperatures above 0
    uint32_t position_limit;  // positions the model was trained for (sparse positions close up before it); 0: no limit
    ot_cost_model cost;       // what auto weighs
} ot_session_params;

ot_session_params ot_session_default_params(void);

// Takes over the memory of `llama_context` (a struct llama_context *, empty, one sequence). `mtmd_context` may be NULL.
// Both must outlive the session, and the session must be freed before them; the context then has its own memory again, empty.
// Decodes one token at two positions to see that cached keys shift as the model computes them, and that text may be given as
// rows of embeddings; OT_ERR_UNSUPPORTED names the layer where they don't (stock_memory = 1 still runs).
// Tokens of the largest picture that the model must see as a whole, all at once (Gemma 3): the context's n_ubatch and n_batch
// must be as large, or larger pictures are refused. 0: no picture need be seen so.
uint32_t ot_largest_whole_picture(const void * mtmd_context);

int ot_session_create(void * llama_context, void * mtmd_context, const ot_session_params * params, ot_session ** out);
void ot_session_free(ot_session * s);

// Makes the pending unit or the current answer stop at the next opportunity (OT_ERR_INTERRUPTED / stop). Any thread, signal-safe.
void ot_session_interrupt(ot_session * s, int on);

// --- units: begin, parts in order, commit (or abandon) ---------------------------------------------------------------

typedef struct ot_ingest {
    uint64_t unit;             // its id: stable over the session, ascending
    uint32_t image_tokens;     // of pictures: source images and slices
    uint32_t audio_tokens;     // of sound
    uint32_t text_tokens;      // of text, answers and the system prompt
    uint32_t boundary_tokens;  // of the markers around them
    uint32_t total_tokens;     // the sum
    double encode_ms;          // picture and sound into embeddings
    double prefill_ms;         // the language model over the whole unit
    uint32_t history_tokens;   // of the whole history, this unit included
} ot_ingest;

// Starts a unit of kind OT_UNIT_*; seconds on the media clock. REQUIRES: no pending unit and no answer.
int ot_unit_begin(ot_session * s, int kind, double start_s, double end_s);
// Adds n tokens of the model's vocabulary as OT_ROLE_*. OT_ERR_ARGUMENT if one of them isn't in it.
int ot_unit_tokens(ot_session * s, int role, const int32_t * tokens, size_t n);

// 8-bit RGB, row-major; encoded at once. Models that cut pictures (MiniCPM) add a source image, slices, and their marks
// as boundary; others one image. Writes the number of all these tokens if n_tokens is not NULL.
int ot_unit_image(ot_session * s, const uint8_t * rgb, uint32_t width, uint32_t height, uint32_t * n_tokens);

// Mono float samples at the encoder's rate, with real sound before and after where there is any (at most 320 and 200
// samples are used). Too short for one token: writes 0 tokens and adds nothing.
int ot_unit_audio(ot_session * s, const float * pcm, size_t n, const float * left, size_t n_left, const float * right, size_t n_right,
                  uint32_t * n_tokens);

// Rows of embeddings (n x n_embd) as an encoder gives them; `width` > 0: a raster, of which tokens [first, first + n)
// follow; continues: a later piece of the raster added right before. For shared encodings, other encoders, and tests.
int ot_unit_rows(ot_session * s, int role, uint32_t width, uint32_t first, int continues, const float * rows, size_t n, uint32_t n_embd);

// Prefills the unit. want_logits: 1 for a unit that a generation follows.
int ot_unit_commit(ot_session * s, int want_logits, ot_ingest * out);
void ot_unit_abandon(ot_session * s);

// --- answers ---------------------------------------------------------------------------------------------------------

typedef struct ot_generated {
    int32_t token;       // -1 when the answer ended
    int32_t end;         // 1: the model ended it
    int32_t piece_len;   // how many bytes the piece has
    const char * piece;  // UTF-8 bytes of the token (not terminated, may be part of a character), until the session's next call
} ot_generated;

// Starts a response unit. REQUIRES: the last commit wanted logits. Each answer of a session draws its own random numbers.
int ot_generate_begin(ot_session * s, double at_s);
// Samples one token and takes it into the history; at the end (ends with end = 1) takes nothing.
int ot_generate_next(ot_session * s, ot_generated * out);
// Closes the response unit with the template's tokens (boundary). Works after an interruption as well.
int ot_generate_end(ot_session * s, const int32_t * closing, size_t n, uint64_t * unit);
// Prefills the pending unit as a question, gives the logits after its last token (n_vocab floats) and takes it back: nothing is
// evicted for it (OT_ERR_NO_ROOM), and history, cells and what comes next are as if it had never been. `most` > 0: first the
// likeliest answer of at most so many tokens is generated, too; `text` (UTF-8, until the session's next call) receives it.
int ot_unit_foresee(ot_session * s, float * logits, size_t cap, uint32_t most, const char ** text, size_t * n_text);

// --- maintenance -----------------------------------------------------------------------------------------------------

// How the history lies, in cells unless said otherwise.
typedef struct ot_layout_stats {
    uint32_t useful_cells;      // that hold a token
    uint32_t active_pages;      // pages with a useful cell
    uint32_t active_subblocks;  // subblocks with one
    uint32_t page_span;         // highest useful cell + 1, rounded up to whole pages
    uint32_t physical_span;     // the same, rounded as the backend does: what attention reads
    uint32_t holes;             // empty cells below the highest useful one
    uint32_t largest_hole;      // the longest run of them
} ot_layout_stats;

typedef struct ot_maintenance {
    int32_t retained;        // 1: retention deleted something; 0: all that follows is 0
    uint32_t before_tokens;  // of the history, before
    uint32_t after_tokens;   // and after
    uint32_t full_units;     // left whole, the system unit included
    uint32_t partial_units;  // of which a part is left
    uint32_t dropped_units;  // gone in this round
    double plan_ms;          // retention and migration, planned
    int32_t planned;         // 1: a migration was planned (after a retention)
    int32_t planner;         // as ot_planner() numbers them, never auto: whose plan it is
    int32_t accepted;        // 1: it was carried out; 0: nothing moved
    const char * reason;     // a static text: what the plan wins, or why nothing moved
    uint32_t rows_moved;     // to another cell
    uint32_t rows_shifted;   // to another position
    uint64_t bytes;          // of these rows: keys and values, all layers
    ot_layout_stats before;  // after the deletion, before the moves
    ot_layout_stats after;   // after the moves
    double migrate_ms;       // relocation of the cached rows
} ot_maintenance;

// Retention and relocation when the history is above the high watermark, or above `limit` tokens if limit > 0 and lower.
int ot_session_maintain(ot_session * s, uint32_t limit, ot_maintenance * out);
// The oldest round, not told yet, that a unit or an answer needed for its room; retained = 0 when there is none.
int ot_session_take_forced(ot_session * s, ot_maintenance * out);

// --- recall: what retention cuts is kept outside the cache, and comes back for the question that asks for it ----------

enum ot_verdict { OT_VERDICT_RECALLED, OT_VERDICT_NOTHING, OT_VERDICT_NOT_CLEAR, OT_VERDICT_NO_ROOM };

typedef struct ot_recall_params {
    uint32_t size;              // sizeof(ot_recall_params)
    uint32_t tokens;            // at most so many come back for a question
    float threshold;            // so many times the score of a unit in the middle must the best one have
    float share;                // what has less of the best one's score doesn't come back
    const uint32_t * layers;    // whose keys and queries tell what is asked for, ascending
    size_t n_layers;            // how many they are
    const int32_t * reference;  // a question about nothing in particular, that scores are weighed against
    size_t n_reference;         // how many tokens it has; 0: scores are shares of attention
    uint64_t memory_bytes;      // of the archive; over it, the oldest units are thinned
    uint64_t disk_bytes;        // the same on disk; 0: in memory alone
    const char * file;          // where on disk; made anew, and gone with the process. NULL: in memory alone
} ot_recall_params;

ot_recall_params ot_recall_default_params(void);

// From here on units are archived when retention first cuts into them. Begins with an empty archive. OT_ERR_UNSUPPORTED where
// the model's positions or layers don't allow it, or on llama.cpp's own memory.
int ot_recall_open(ot_session * s, const ot_recall_params * params);

// What is to be kept with a unit when it is archived: what it says, as UTF-8, and a small picture, as the bytes of an image
// file. Replaces what was noted before.
int ot_recall_note(ot_session * s, uint64_t unit, const char * text, size_t n_text, const uint8_t * picture, size_t n_picture);

typedef struct ot_found {
    uint64_t unit;   // its id
    int32_t kind;    // OT_UNIT_*
    float score;     // its share of what the question asks for, of all archived units'
    double start_s;  // on the media clock
    double end_s;    // the same
} ot_found;

typedef struct ot_recalled {
    int32_t verdict;    // OT_VERDICT_*
    float clearness;    // the best unit's score / the median; 0: there is one unit
    uint32_t tokens;    // that came back
    uint32_t n_units;   // the same in units
    uint32_t searched;  // archived units
    double oldest_s;    // where the oldest of these begins
    double search_ms;   // the question's queries, scores, choice
    double insert_ms;   // taking out what was recalled before, putting back what is now
} ot_recalled;

// Puts back what a question's text asks for, before all that is kept, in place of what was recalled before; `reserved` cells
// stay free for question and answer. The units that came back, in the order of time, are written to `units` (at most `cap`). What
// comes back leaves with the next media unit or retention. REQUIRES: no unit and no answer in the making.
int ot_recall_question(ot_session * s, const int32_t * tokens, size_t n, uint32_t reserved, ot_found * units, size_t cap, ot_recalled * out);
// Every archived unit, by age, with its score; `n_units` receives how many there are, of which at most `cap` are written.
int ot_recall_search(ot_session * s, const int32_t * tokens, size_t n, ot_found * units, size_t cap, size_t * n_units);
// Puts these archived units back whatever is asked, in place of what was recalled before; ids ascend. Units whose rows are
// gone are left out; `tokens` receives how many came. OT_ERR_ARGUMENT: one isn't archived. OT_ERR_NO_ROOM: nothing came back.
int ot_recall_units(ot_session * s, const uint64_t * units, size_t n, uint32_t * tokens);
// Takes out what was recalled; harmless when there is nothing.
int ot_recall_dismiss(ot_session * s);

// What was noted of an archived unit, and the tokens that are left of its rows. Each text or picture is written up to its
// capacity, and the sizes tell how much there is. OT_ERR_ARGUMENT: no such unit.
int ot_recall_noted(ot_session * s, uint64_t unit, uint32_t * tokens, char * text, size_t cap_text, size_t * n_text, uint8_t * picture,
                    size_t cap_picture, size_t * n_picture);

typedef struct ot_archive_info {
    uint32_t units;         // in the archive
    uint32_t whole;         // of which this many are as they were cut
    uint32_t thinned;       // with their most telling tokens alone
    uint32_t bare;          // without rows: they are found, but can't come back
    uint64_t dropped;       // units that were forgotten altogether
    uint64_t lost;          // units whose rows couldn't be read back
    uint64_t memory_bytes;  // index, thumbnails and texts included
    uint64_t disk_bytes;    // of rows
    uint64_t index_bytes;   // of those in memory
    char problem[256];      // why nothing is written to disk any more; "" when all is well
} ot_archive_info;

int ot_recall_archive(const ot_session * s, ot_archive_info * out);

// Writes the archive: what ot_session_save doesn't hold. `out` may be NULL to ask for the size; `size` receives how much was
// written, which is less than that where rows on disk turn out to be unreadable.
int ot_recall_save(ot_session * s, void * out, size_t cap, size_t * size);
// Takes a saved archive in place of what there is, after ot_session_restore of the session that it belongs to. What is over
// the budgets of this session is thinned. OT_ERR_STATE: it is damaged, or of another model; OT_ERR_UNSUPPORTED: it is indexed
// by other layers, or of another version. Either way nothing was done. The bytes may come from anyone.
int ot_recall_restore(ot_session * s, const void * data, size_t size);

// --- saving ----------------------------------------------------------------------------------------------------------

// Writes the session: ledger, cells, cached rows and what is needed to rotate them exactly. `out` may be NULL to ask for
// the size. REQUIRES: no unfinished unit or answer. OT_ERR_UNSUPPORTED on llama.cpp's own memory.
int ot_session_save(const ot_session * s, void * out, size_t cap, size_t * size);
// Takes a saved session in place of what there is, every token in its cell; the next update computes what it would have
// computed in the session that was saved. Policy, watermarks, layout, positions and flash attention may differ, the cache
// may be larger where that doesn't change the model's rotary frequencies; model and cache type may not (OT_ERR_STATE). A
// broken session forgets the unit and the answer in hand. The bytes may come from anyone.
int ot_session_restore(ot_session * s, const void * data, size_t size);

// --- looking inside --------------------------------------------------------------------------------------------------

typedef struct ot_snapshot {
    uint32_t history_tokens;      // tokens that the model can attend to
    uint32_t next_position;       // the position that the next token gets
    uint32_t n_cells;             // size of the cache
    uint32_t free_cells;          // of which this many hold no token
    uint32_t n_units;             // in the history
    uint32_t max_rotations;       // shifts that the most shifted span has gone through
    uint32_t must_cells;          // of the system unit
    uint32_t selected_cells;      // of units that have lost a token
    uint32_t recent_cells;        // of units that are whole
    uint32_t recalled_cells;      // of units that were put back for a question
    uint64_t kv_bytes_allocated;  // keys, values and original keys; 0 on llama.cpp's own memory
    uint64_t kv_bytes_per_cell;   // keys and values, all layers
    int32_t mrope;                // 1: positions are (t, y, x)
    int32_t transposed_v;         // 1: values are stored transposed
    int32_t flash_attention;      // 1: attention runs as one operator that doesn't expose its weights
    int32_t has_vision;           // 1: the model has a vision encoder
    int32_t has_audio;            // 1: it has an audio encoder that can be used
    ot_layout_stats layout;       // how the history lies
} ot_snapshot;

typedef struct ot_unit_info {
    uint64_t id;       // stable over the session, ascending
    int32_t kind;      // OT_UNIT_*
    int32_t partial;   // 1: it has lost a token
    int32_t recalled;  // 1: it was put back for a question; the id is that of the unit when it came
    uint32_t tokens;   // that are left of it
    uint32_t n_spans;  // that are left of it
    double start_s;    // on the media clock
    double end_s;      // the same
} ot_unit_info;

typedef struct ot_span_info {
    int32_t role;        // OT_ROLE_*
    int32_t continues;   // 1: a later piece of the span before, in the same unit
    uint32_t length;     // tokens that are left
    uint32_t first;      // index of the first of them, in the span as it was added
    uint32_t width;      // tokens of a raster row; 0: no raster
    uint32_t rotations;  // how often its keys were shifted
    int32_t base;        // raster under M-RoPE: t of all its tokens, and x, y of raster index 0; else position of the first token
} ot_span_info;

typedef struct ot_token_info {
    uint32_t cell;  // where its row lies, in every layer
    int32_t t;      // its position; of a raster's tokens under M-RoPE, one for all
    int32_t y;      // t plus the row within a raster; elsewhere t
    int32_t x;      // t plus the column within a raster; elsewhere t
} ot_token_info;

// The session as a whole.
int ot_session_snapshot(const ot_session * s, ot_snapshot * out);
// Each fills at most `cap` entries and returns how many there are: OT_CELL_* of every cell, then units, their spans and the
// spans' tokens, all in history order.
size_t ot_session_cells(const ot_session * s, uint8_t * classes, size_t cap);
size_t ot_session_units(const ot_session * s, ot_unit_info * out, size_t cap);
size_t ot_session_spans(const ot_session * s, ot_span_info * out, size_t cap);
size_t ot_session_tokens(const ot_session * s, ot_token_info * out, size_t cap);
// Attention that each token has received from all heads of all layers, in history order; zeros unless the policy reads it.
size_t ot_session_scores(const ot_session * s, double * out, size_t cap);

// Compares the ledger with llama.cpp's cells; OT_OK when they agree.
int ot_session_check(const ot_session * s);

// Logits after the newest token that wanted them (n_vocab floats), and one cell's key or value row of one layer as floats.
int ot_session_logits(ot_session * s, float * out, size_t cap);
size_t ot_session_key_width(const ot_session * s, uint32_t layer);
int ot_session_key(ot_session * s, uint32_t layer, uint32_t cell, float * out, size_t cap);
size_t ot_session_value_width(const ot_session * s, uint32_t layer);
int ot_session_value(ot_session * s, uint32_t layer, uint32_t cell, float * out, size_t cap);

// The sound that the session's model hears: what its kind of encoder takes (src/encode/sound_encoders.def), and what of it
// is the model's own. Counts are samples of one channel.
typedef struct ot_audio_format {
    int32_t encoder;             // the kind's number
    uint32_t rate;               // a second
    uint32_t before;             // of the sound right before a unit, which it hears as well
    uint32_t after;              // and right behind it
    uint32_t samples_per_token;  // of which a token is made
    uint32_t shortest;           // that give a token; less can't be encoded
    uint32_t longest;            // that can be encoded at once
} ot_audio_format;

// OT_ERR_UNSUPPORTED, with the reason, where the model hears nothing.
int ot_session_audio_format(const ot_session * s, ot_audio_format * out);

// A span that is added, or would be; width > 0: a raster (images alone).
typedef struct ot_part {
    int32_t role;     // OT_ROLE_*
    uint32_t length;  // tokens
    uint32_t width;   // tokens of a raster row; 0: no raster
} ot_part;

// What the encoders give, without touching the history: rows of n_embd floats. An image's spans, its tokens (-1: a row)
// and its rows, each in order; there is room for a row a token. Sound's rows may be NULL: then they are counted alone.
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
    uint32_t src;   // the cell that its row left
    uint32_t dst;   // the cell that it lies in now
    int32_t delta;  // what was added to its position
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
