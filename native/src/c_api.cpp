// The C API: nothing but translation. No exception crosses it, every failure leaves a status and a text.
#include "api_common.h"

#include "encode/mel.h"
#include "llama/log.h"
#include "session/session.h"
#include "session_handle.h"

#include <ggml.h>

#include <algorithm>
#include <string>
#include <utility>

using namespace ot;
using namespace ot::api;

namespace {

SessionSettings settings_from(const ot_session_params & p) {
    SessionSettings s;
    s.history = history_settings(p);
    s.threads = p.threads;
    s.stock_memory = p.stock_memory != 0;
    s.temperature = p.temperature;
    s.seed = p.seed;
    return s;
}

}  // namespace

// --- library ---------------------------------------------------------------------------------------------------------

int ot_abi_version(void) { return OT_ABI_VERSION; }
const char * ot_llama_version(void) { return llama_version(); }
const char * ot_ggml_version(void) { return ggml_version(); }
const char * ot_expected_llama_version(void) { return OMNITIDE_LLAMA_VERSION; }
const char * ot_expected_ggml_version(void) { return OMNITIDE_GGML_VERSION; }

void ot_log_take(void) { take_log(); }

const char * ot_log_take_error(void) {
    thread_local std::string line;
    line = take_log_error();
    return line.c_str();
}

// --- session ---------------------------------------------------------------------------------------------------------

ot_session_params ot_session_default_params(void) {
    const HistorySettings defaults;
    ot_session_params p{};
    p.size = sizeof(p);
    p.policy = static_cast<int32_t>(defaults.pick.policy);
    p.high_watermark = defaults.pick.high_watermark;
    p.low_watermark = defaults.pick.low_watermark;
    p.planner = static_cast<int32_t>(defaults.page.planner);
    p.positions = OT_POSITIONS_COMPACT;
    p.page_size = defaults.geometry.page_size;
    p.subblock_size = defaults.geometry.subblock_size;
    p.span_align = defaults.geometry.span_align;
    p.threads = 2;
    p.cost.kernel = OT_KERNEL_TILED;
    p.cost.tile_us = defaults.cost.tile_us;
    p.cost.empty_tile_us = defaults.cost.empty_tile_us;
    p.cost.cell_us = defaults.cost.cell_us;
    p.cost.run_us = defaults.cost.run_us;
    p.cost.empty_cell_us = defaults.cost.empty_cell_us;
    p.cost.slice_cell_us = defaults.cost.slice_cell_us;
    p.cost.span_cell_us = defaults.cost.span_cell_us;
    p.cost.key_row_us = defaults.cost.key_row_us;
    p.cost.value_row_us = defaults.cost.value_row_us;
    return p;
}

uint32_t ot_largest_whole_picture(const void * mtmd_context_) { return largest_whole_picture(static_cast<const mtmd_context *>(mtmd_context_)); }

int ot_session_create(void * llama_context_ptr, void * mtmd_context_ptr, const ot_session_params * params, ot_session ** out) {
    return guarded([&] {
        if (!llama_context_ptr || !params || !out) throw Failure{OT_ERR_ARGUMENT, "a pointer is missing"};
        *out = new ot_session{{*static_cast<llama_context *>(llama_context_ptr), static_cast<mtmd_context *>(mtmd_context_ptr), settings_from(*params)}, {}};
    });
}

void ot_session_free(ot_session * s) { delete s; }
void ot_session_interrupt(ot_session * s, int on) { s->session.interrupt(on != 0); }

// --- units -----------------------------------------------------------------------------------------------------------

int ot_unit_begin(ot_session * s, int kind, double start_s, double end_s) {
    return guarded([&] { s->session.begin(checked(kind, UnitKind::Response, "unit kind"), start_s, end_s); });
}

int ot_unit_tokens(ot_session * s, int role, const int32_t * tokens, size_t n) {
    return guarded([&] { s->session.add_tokens(checked(role, Role::System, "role"), tokens, n); });
}

int ot_unit_image(ot_session * s, const uint8_t * rgb, uint32_t width, uint32_t height, uint32_t * n_tokens) {
    return guarded([&] {
        const uint32_t n = s->session.add_image(rgb, width, height);
        if (n_tokens) *n_tokens = n;
    });
}

int ot_unit_audio(ot_session * s, const float * pcm, size_t n, const float * left, size_t n_left, const float * right, size_t n_right,
                  uint32_t * n_tokens) {
    return guarded([&] {
        const uint32_t added = s->session.add_audio({pcm, n}, {left, n_left}, {right, n_right});
        if (n_tokens) *n_tokens = added;
    });
}

int ot_unit_rows(ot_session * s, int role, uint32_t width, uint32_t first, int continues, const float * rows, size_t n, uint32_t n_embd) {
    return guarded([&] {
        if (n_embd != s->session.n_embd()) {
            throw Failure{OT_ERR_ARGUMENT, "rows of " + std::to_string(n_embd) + " numbers, the model takes " + std::to_string(s->session.n_embd())};
        }
        s->session.add_rows(checked(role, Role::System, "role"), width, first, continues != 0, rows, n);
    });
}

int ot_unit_commit(ot_session * s, int want_logits, ot_ingest * out) {
    return guarded([&] {
        const Ingested done = s->session.commit(want_logits != 0);
        if (!out) return;
        const auto tokens = [&](Role role) { return done.tokens_by_role[static_cast<size_t>(role)]; };
        *out = {};
        out->unit = done.unit;
        out->image_tokens = tokens(Role::ImageSource) + tokens(Role::ImageSlice);
        out->audio_tokens = tokens(Role::Audio);
        out->text_tokens = tokens(Role::Text) + tokens(Role::Response) + tokens(Role::System);
        out->boundary_tokens = tokens(Role::Boundary);
        out->total_tokens = out->image_tokens + out->audio_tokens + out->text_tokens + out->boundary_tokens;
        out->encode_ms = done.encode_ms;
        out->prefill_ms = done.prefill_ms;
        out->history_tokens = s->session.history().ledger().tokens();
    });
}

void ot_unit_abandon(ot_session * s) { s->session.abandon(); }

// --- for benchmarks --------------------------------------------------------------------------------------------------

int ot_cache_fill(ot_session * s, uint32_t seed) {
    return guarded([&] { s->session.fill_cache(seed); });
}

int ot_unit_inject(ot_session * s, const uint32_t * cells, size_t n) {
    return guarded([&] { s->session.inject(cells ? std::vector<Cell>(cells, cells + n) : std::vector<Cell>{}); });
}

int ot_session_inject(ot_session * s, const void * data, size_t size) {
    return guarded([&] {
        ByteReader reader{static_cast<const uint8_t *>(data), size};
        s->session.inject_history(reader);
    });
}

int ot_unit_dry_run(ot_session * s, double * ms, double * attention_ms, float * logits, size_t cap) {
    return guarded([&] {
        if (logits && cap < s->session.n_vocab()) throw Failure{OT_ERR_ARGUMENT, "the buffer is smaller than the vocabulary"};
        const double took = s->session.dry_run(logits, attention_ms);
        if (ms) *ms = took;
    });
}

// --- answers ---------------------------------------------------------------------------------------------------------

int ot_generate_begin(ot_session * s, double at_s) {
    return guarded([&] { s->session.generate_begin(at_s); });
}

int ot_generate_next(ot_session * s, ot_generated * out) {
    return guarded([&] {
        Generated next = s->session.generate_next();
        s->piece = std::move(next.piece);
        *out = {};
        out->token = next.token;
        out->end = next.token == kNoToken;
        out->piece = s->piece.data();
        out->piece_len = static_cast<int32_t>(s->piece.size());
    });
}

int ot_generate_end(ot_session * s, const int32_t * closing, size_t n, uint64_t * unit) {
    return guarded([&] {
        const uint64_t id = s->session.generate_end(closing, n);
        if (unit) *unit = id;
    });
}

int ot_unit_foresee(ot_session * s, float * logits, size_t cap, uint32_t most, const char ** text, size_t * n_text) {
    return guarded([&] {
        if (cap < s->session.n_vocab()) throw Failure{OT_ERR_ARGUMENT, "the buffer is smaller than the vocabulary"};
        s->piece = s->session.foresee(logits, most);
        *text = s->piece.data();
        *n_text = s->piece.size();
    });
}

// --- maintenance -----------------------------------------------------------------------------------------------------

static ot_maintenance report(const Session & session, const Maintained & done) {
    ot_maintenance out = to_c(done.upkeep);
    out.plan_ms = done.plan_ms;
    out.bytes = done.upkeep.rows.size() * (session.cache() ? session.cache()->bytes_per_cell() : 0);
    out.migrate_ms = done.migrate_ms;
    return out;
}

int ot_session_maintain(ot_session * s, uint32_t limit, ot_maintenance * out) {
    return guarded([&] { *out = report(s->session, s->session.maintain(limit)); });
}

int ot_session_take_forced(ot_session * s, ot_maintenance * out) {
    return guarded([&] {
        const std::optional<Maintained> done = s->session.take_forced();
        *out = done ? report(s->session, *done) : ot_maintenance{};
    });
}

// --- saving ----------------------------------------------------------------------------------------------------------

int ot_session_save(const ot_session * s, void * out, size_t cap, size_t * size) {
    return guarded([&] { write_state(out, cap, size, [&](ByteWriter & writer) { s->session.save(writer); }); });
}

int ot_session_restore(ot_session * s, const void * data, size_t size) {
    return guarded([&] {
        ByteReader reader{static_cast<const uint8_t *>(data), size};
        s->session.restore(reader);
    });
}

// --- looking inside --------------------------------------------------------------------------------------------------

int ot_session_snapshot(const ot_session * s, ot_snapshot * out) {
    return guarded([&] {
        *out = snapshot(s->session.history());
        if (const CacheHandle * cache = s->session.cache()) {
            out->kv_bytes_per_cell = cache->bytes_per_cell();
            out->kv_bytes_allocated = cache->bytes_allocated();
            out->transposed_v = cache->transposed_values();
        }
        out->flash_attention = s->session.flash_attention();
        out->has_vision = s->session.encoder().has_vision();
        out->has_audio = s->session.encoder().has_audio();
    });
}

size_t ot_session_cells(const ot_session * s, uint8_t * classes, size_t cap) { return cells(s->session.history(), classes, cap); }
size_t ot_session_scores(const ot_session * s, double * out, size_t cap) { return scores(s->session.history(), out, cap); }
size_t ot_session_units(const ot_session * s, ot_unit_info * out, size_t cap) { return units(s->session.history(), out, cap); }
size_t ot_session_spans(const ot_session * s, ot_span_info * out, size_t cap) { return spans(s->session.history(), out, cap); }
size_t ot_session_tokens(const ot_session * s, ot_token_info * out, size_t cap) { return tokens(s->session.history(), out, cap); }

int ot_session_check(const ot_session * s) {
    return guarded([&] {
        if (std::string what = s->session.mismatch(); !what.empty()) throw Failure{OT_ERR_BROKEN, what};
    });
}

int ot_session_logits(ot_session * s, float * out, size_t cap) {
    return guarded([&] {
        const float * logits = s->session.logits();
        if (!logits) throw Failure{OT_ERR_ARGUMENT, "no logits were asked for with the last unit"};
        if (cap < s->session.n_vocab()) throw Failure{OT_ERR_ARGUMENT, "the buffer is smaller than the vocabulary"};
        std::copy_n(logits, s->session.n_vocab(), out);
    });
}

size_t ot_session_key_width(const ot_session * s, uint32_t layer) {
    const CacheHandle * cache = s->session.cache();
    return cache ? cache->key_width(layer) : 0;
}

int ot_session_key(ot_session * s, uint32_t layer, uint32_t cell, float * out, size_t cap) {
    return guarded([&] {
        const CacheHandle * cache = s->session.cache();
        const std::vector<float> row = cache ? cache->key_row(layer, cell) : std::vector<float>{};
        if (row.empty() || cap < row.size()) throw Failure{OT_ERR_ARGUMENT, "no such layer or cell, or too small a buffer"};
        std::copy(row.begin(), row.end(), out);
    });
}

size_t ot_session_value_width(const ot_session * s, uint32_t layer) {
    const CacheHandle * cache = s->session.cache();
    return cache ? cache->value_width(layer) : 0;
}

int ot_session_value(ot_session * s, uint32_t layer, uint32_t cell, float * out, size_t cap) {
    return guarded([&] {
        const CacheHandle * cache = s->session.cache();
        const std::vector<float> row = cache ? cache->value_row(layer, cell) : std::vector<float>{};
        if (row.empty() || cap < row.size()) throw Failure{OT_ERR_ARGUMENT, "no such layer or cell, or too small a buffer"};
        std::copy(row.begin(), row.end(), out);
    });
}

int ot_session_audio_format(const ot_session * s, ot_audio_format * out) {
    return guarded([&] {
        const SoundEncoderEntry & entry = s->session.encoder().sound_entry();
        const SoundEncoder & encoder = s->session.encoder().sound();
        const auto kind = static_cast<int32_t>(entry.kind);
        const auto [rate, before, after, shortest] = entry.format;
        *out = {kind, rate, before, after, encoder.samples_per_token(), shortest, encoder.longest()};
    });
}

int ot_encode_image(ot_session * s, const uint8_t * rgb, uint32_t width, uint32_t height, ot_part * parts, size_t cap_parts, size_t * n_parts,
                    int32_t * tokens, float * rows, size_t cap_tokens, size_t * n_tokens) {
    return guarded([&] {
        PendingUnit unit;
        unit.add_image(s->session.encoder().image(rgb, width, height));
        *n_parts = unit.spans.size();
        *n_tokens = unit.size();
        if (cap_parts < *n_parts || cap_tokens < *n_tokens) throw Failure{OT_ERR_ARGUMENT, "a buffer is too small"};
        for (const Span & span : unit.spans) *parts++ = {static_cast<int32_t>(span.role), span.length, span.width};
        std::copy(unit.tokens.begin(), unit.tokens.end(), tokens);
        std::copy(unit.rows.begin(), unit.rows.end(), rows);
    });
}

int ot_encode_audio(ot_session * s, const float * pcm, size_t n, const float * left, size_t n_left, const float * right, size_t n_right,
                    float * rows, size_t cap_rows, uint32_t * n_rows) {
    return guarded([&] {
        *n_rows = s->session.encoder().sound().rows(n);
        if (!rows) return;
        if (cap_rows < *n_rows) throw Failure{OT_ERR_ARGUMENT, "the buffer has too few rows"};
        const Embedding sound = s->session.encoder().audio({pcm, n}, {left, n_left}, {right, n_right});
        std::copy(sound.rows.begin(), sound.rows.end(), rows);
    });
}

int ot_mel(const float * pcm, size_t n, const float * left, size_t n_left, const float * right, size_t n_right, uint32_t n_mel, float * out,
           size_t cap, uint32_t * n_frames) {
    return guarded([&] {
        const Mel mel = log_mel({pcm, n}, {left, n_left}, {right, n_right}, n_mel);
        if (cap < mel.data.size()) throw Failure{OT_ERR_ARGUMENT, "the buffer is too small"};
        std::copy(mel.data.begin(), mel.data.end(), out);
        *n_frames = mel.n_frames;
    });
}
