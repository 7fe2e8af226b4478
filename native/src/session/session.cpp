#include "session/session.h"

#include "ledger/violation.h"
#include "llama/self_test.h"
#include "omnitide.h"

#include <algorithm>
#include <utility>

namespace ot {
namespace {

bool is_mrope(const llama_model & model) {
    const llama_rope_type type = llama_model_rope_type(&model);
    return type == LLAMA_ROPE_TYPE_MROPE || type == LLAMA_ROPE_TYPE_IMROPE;
}

// Null: llama.cpp's own memory. Whatever is refused here or later leaves the context as it was.
std::unique_ptr<CacheHandle> take_over(llama_context & context, const SessionSettings & settings) {
    if (reads_attention(settings.history.pick) && uses_flash_attention(context)) {
        throw Failure{OT_ERR_UNSUPPORTED, "the policy needs attention weights, which flash attention doesn't expose"};
    }
    if (settings.stock_memory) {
        if (deletes(settings.history.pick)) throw Failure{OT_ERR_ARGUMENT, "llama.cpp's own memory supports only the policy full"};
        if (llama_memory_seq_pos_max(llama_get_memory(&context), 0) != -1) throw Failure{OT_ERR_UNSUPPORTED, "the context is not empty"};
        return nullptr;
    }
    std::string reason;
    auto handle = CacheHandle::attach(context, reason);
    if (!handle) throw Failure{OT_ERR_UNSUPPORTED, reason};
    return handle;
}

// While it lives, tokens see all others of their batch.
class Unmasked {
public:
    Unmasked(llama_context & context, bool on) : context_(context), on_(on) {
        if (on_) llama_set_causal_attn(&context_, false);
    }
    ~Unmasked() {
        if (on_) llama_set_causal_attn(&context_, true);
    }
    Unmasked(const Unmasked &) = delete;
    Unmasked & operator=(const Unmasked &) = delete;

private:
    llama_context & context_;
    bool on_;
};

// Without flash attention the span is what attention costs.
HistorySettings with_kernel(HistorySettings settings, const llama_context & context) {
    if (!uses_flash_attention(context)) settings.cost.kernel = Kernel::Span;
    return settings;
}

}  // namespace

Session::Session(llama_context & context, mtmd_context * mtmd, const SessionSettings & settings)
    : context_(context),
      model_(*llama_get_model(&context)),
      vocab_(*llama_model_get_vocab(&model_)),
      n_embd_(static_cast<uint32_t>(llama_model_n_embd_inp(&model_))),
      n_learned_positions_(learned_positions(model_)),
      cache_(take_over(context, settings)),
      history_(is_mrope(model_), cache_ ? cache_->n_cells() : llama_n_ctx(&context), with_kernel(settings.history, context)),
      probe_(context),
      encoder_(mtmd, n_embd_, is_mrope(model_), settings.threads),
      token_rows_(model_),
      temperature_(settings.temperature),
      seed_(settings.seed) {
    const SelfTested tested = self_test(context_, cache_.get(), token_rows_);
    if (!tested.refusal.empty()) throw Failure{OT_ERR_UNSUPPORTED, tested.refusal};
    rows_as_tokens_ = tested.rows_as_tokens;
    probe_.watch(false, counts_attention());
    llama_set_abort_callback(&context_, abort_callback, this);
}

Session::~Session() { llama_set_abort_callback(&context_, nullptr, nullptr); }

bool Session::abort_callback(void * session) {
    const auto * self = static_cast<const Session *>(session);
    return self->abortable_ && self->interrupted_.load(std::memory_order_relaxed);
}

void Session::require_usable() const {
    if (broken_) throw Failure{OT_ERR_BROKEN, "after an earlier failure ledger and cache no longer agree; restore the session or start a new one"};
}

// --- units -----------------------------------------------------------------------------------------------------------

PendingUnit & Session::pending() {
    if (!pending_) throw Failure{OT_ERR_ARGUMENT, "no unit has been begun"};
    return *pending_;
}

template <typename Body>
auto Session::or_take_back(Body && body) {
    try {
        return body();
    } catch (...) {
        pending_.reset();
        throw;
    }
}

void Session::begin(UnitKind kind, double start_s, double end_s) {
    require_usable();
    if (pending_) throw Failure{OT_ERR_ARGUMENT, "a unit has been begun already"};
    if (answer_) throw Failure{OT_ERR_ARGUMENT, "an answer is being generated"};
    pending_.emplace();
    pending_->kind = kind;
    pending_->start_s = start_s;
    pending_->end_s = end_s;
}

void Session::add_tokens(Role role, const int32_t * tokens, size_t n) {
    PendingUnit & unit = pending();
    for (size_t i = 0; i < n; ++i) {
        if (tokens[i] < 0 || tokens[i] >= llama_vocab_n_tokens(&vocab_)) throw Failure{OT_ERR_ARGUMENT, "a token is outside the vocabulary"};
    }
    or_take_back([&] { unit.add_tokens(role, tokens, n); });
}

uint32_t Session::add_image(const uint8_t * rgb, uint32_t width, uint32_t height) {
    PendingUnit & unit = pending();
    const Stopwatch watch;
    const uint32_t before = unit.size();
    or_take_back([&] {
        unit.add_image(encoder_.image(rgb, width, height, [this] {  // slices may be many: stop between two
            if (interrupted_.load(std::memory_order_relaxed)) throw Failure{OT_ERR_INTERRUPTED, "interrupted"};
        }));
    });
    unit.encode_ms += watch.ms();
    return unit.size() - before;
}

uint32_t Session::add_audio(Sound window, Sound left, Sound right) {
    PendingUnit & unit = pending();
    const Stopwatch watch;
    const uint32_t n_rows = or_take_back([&] {
        const Embedding sound = encoder_.audio(window, left, right);
        unit.add_rows(Role::Audio, 0, 0, sound.rows, sound.n_rows);
        return sound.n_rows;
    });
    unit.encode_ms += watch.ms();
    return n_rows;
}

void Session::add_rows(Role role, uint32_t width, uint32_t first, bool continues, const float * rows, size_t n) {
    PendingUnit & unit = pending();
    if (n == 0) return;
    if (!is_image(role)) width = 0;
    if (n > kLongestSpan || width > kLongestSpan || first > kLongestSpan) throw Failure{OT_ERR_ARGUMENT, "a span is too long"};
    if (continues) {
        const Span * before = unit.spans.empty() ? nullptr : &unit.spans.back();
        const bool fits = before && before->role == role && before->width == width && (width == 0 || first >= before->first + before->length);
        if (!fits) throw Failure{OT_ERR_ARGUMENT, "the rows continue nothing: the span before them is of another kind, or a later piece"};
    }
    or_take_back([&] { unit.add_rows(role, width, first, {rows, rows + n * n_embd_}, static_cast<uint32_t>(n)); });
    unit.spans.back().continues = continues;
}

PendingUnit Session::finished_unit() {
    require_usable();
    PendingUnit unit = std::exchange(pending_, std::nullopt).value_or(PendingUnit{});
    if (unit.size() == 0) throw Failure{OT_ERR_ARGUMENT, "the unit is empty"};
    return unit;
}

Ingested Session::commit(bool want_logits) {
    PendingUnit unit = finished_unit();
    if (unit.kind == UnitKind::Media) dismiss();
    make_room(unit.size());
    const Stopwatch watch;
    history_.lay_out(unit.spans);
    const std::vector<TokenPosition> positions = token_positions(unit.spans, mrope());
    std::vector<Cell> cells = history_.place(unit.size());
    {
        const Abortable scope{abortable_};
        decode(unit, positions, cells, want_logits);
    }

    Ingested done;
    for (const Span & span : unit.spans) done.tokens_by_role[static_cast<size_t>(span.role)] += span.length;
    broken_ = true;  // if the ledger can't take what the cache has
    done.unit = history_.append(unit.kind, std::move(unit.spans), std::move(cells), unit.start_s, unit.end_s);
    count_attention();
    broken_ = false;
    done.encode_ms = unit.encode_ms;
    done.prefill_ms = watch.ms();
    return done;
}

void Session::make_room(uint32_t n) {
    if (history_.free_cells() >= n) return;
    dismiss();
    if (history_.free_cells() >= n) return;
    if (n < n_cells() && deletes(history_.settings().pick)) {
        if (Maintained done = maintain(n_cells() - n); done.upkeep.retention.triggered) forced_.push_back(std::move(done));
    }
    if (history_.free_cells() < n) {
        throw Failure{OT_ERR_NO_ROOM, "the cache is full: " + std::to_string(n) + " tokens were to be added, but only " + std::to_string(history_.free_cells()) +
                                          " of " + std::to_string(n_cells()) + " cells are free"};
    }
}

void Session::decode(const PendingUnit & unit, const std::vector<TokenPosition> & positions, const std::vector<Cell> & cells, bool want_logits) {
    logits_ready_ = false;
    // Tokens of an answer, one by one, aren't worth a copy of what recurrent layers know: nothing interrupts them.
    if (cache_) cache_->begin_unit(abortable_ || unit.size() > 1);
    const uint32_t n_batch = llama_n_batch(&context_);
    try {
        const Position last = positions.back().t;  // positions never decrease
        if (n_learned_positions_ > 0 && last >= static_cast<Position>(n_learned_positions_)) {  // where llama.cpp aborts
            throw Failure{OT_ERR_NO_ROOM, "the model knows " + std::to_string(n_learned_positions_) + " positions and no more"};
        }
        for (const DecodeRun & run : decode_runs(unit, {rows_as_tokens_, encoder_.attends_freely(), n_batch})) {
            // Backends other than the CPU don't ask in mid-graph.
            if (abortable_ && interrupted_.load(std::memory_order_relaxed)) throw Failure{OT_ERR_INTERRUPTED, "interrupted"};
            decode_run(unit, positions, cells, run, want_logits && run.end == unit.size());
        }
    } catch (...) {
        take_back(cells, positions.front().t);
        throw;
    }
    logits_ready_ = want_logits;
}

void Session::count_attention() {
    if (counts_attention()) history_.attend(probe_.take_sums());
}

void Session::decode_run(const PendingUnit & unit, const std::vector<TokenPosition> & positions, const std::vector<Cell> & cells, const DecodeRun & run,
                         bool want_logits) {
    const auto [begin, end, as_rows, freely, first_row] = run;
    const uint32_t n = end - begin;
    const uint32_t at_once = std::min(llama_n_ubatch(&context_), llama_n_batch(&context_));
    if (freely && n > at_once) {  // at which llama.cpp aborts
        throw Failure{OT_ERR_UNSUPPORTED, "a picture of " + std::to_string(n) + " tokens, which this model must see as a whole, is more than the context takes at once (" +
                                              std::to_string(at_once) + ")"};
    }
    const Unmasked unmasked{context_, freely};
    const bool four = as_rows && mrope();  // t, y, x and an unused fourth, one section after the other
    std::vector<llama_pos> pos(static_cast<size_t>(n) * (four ? 4 : 1), 0);
    std::vector<int32_t> n_seq(n, 1);
    llama_seq_id zero = 0;
    std::vector<llama_seq_id *> seq(n, &zero);
    std::vector<int8_t> output(n, 0);
    std::vector<llama_token> tokens;
    std::vector<float> rows;
    if (want_logits) output.back() = 1;
    size_t next_row = first_row;
    for (uint32_t i = 0; i < n; ++i) {
        const TokenPosition & p = positions[begin + i];
        pos[i] = p.t;
        if (four) {
            pos[n + i] = p.y;
            pos[2 * n + i] = p.x;
        }
        const int32_t token = unit.tokens[begin + i];
        if (!as_rows) {
            tokens.push_back(token);
        } else if (token != kNoToken) {
            token_rows_.append(token, rows);
        } else {
            const auto from = unit.rows.begin() + static_cast<std::ptrdiff_t>(next_row++ * n_embd_);
            rows.insert(rows.end(), from, from + n_embd_);
        }
    }
    const llama_batch batch{static_cast<int32_t>(n), as_rows ? nullptr : tokens.data(), as_rows ? rows.data() : nullptr,
                            pos.data(), n_seq.data(), seq.data(), output.data()};
    if (cache_) cache_->place_next({cells.begin() + begin, cells.begin() + end});

    int status = 0;
    std::string detail;
    try {
        status = llama_decode(&context_, batch);
        if (status == 0) llama_synchronize(&context_);
    } catch (const std::exception & error) {
        status = -1;
        detail = error.what();
    }
    if (status == 2) throw Failure{OT_ERR_INTERRUPTED, "interrupted"};
    if (status != 0) {
        throw Failure{OT_ERR_DECODE, "llama.cpp could not decode " + std::to_string(n) + " tokens (status " + std::to_string(status) +
                                         (detail.empty() ? ")" : "): " + detail)};
    }
}

void Session::take_back(const std::vector<Cell> & cells, Position from) {
    history_.give_back(cells);
    probe_.take_sums();  // of what is taken back, nothing counts
    if (cache_) {
        cache_->place_next({});
        const bool is_back = cache_->undo_unit();
        cache_->remove(cells);  // stock removal goes by position, which would hit the unit's earlier batches
        if (!is_back) broken_ = true;
    } else if (!llama_memory_seq_rm(llama_get_memory(&context_), 0, from, -1)) {
        broken_ = true;  // recurrent state can't go back by a few tokens
    }
}

// --- maintenance -----------------------------------------------------------------------------------------------------

Maintained Session::maintain(uint32_t limit) {
    require_usable();
    Maintained done;
    const uint32_t high = history_.settings().pick.high_watermark;
    const uint32_t recalled = history_.ledger().recalled_tokens();
    const bool is_due = history_.ledger().tokens() - recalled > (limit > 0 ? std::min(limit, high) : high);
    if (recalled > 0) {  // retention never sees what was recalled
        if (!is_due) return done;
        dismiss();
    }
    std::vector<Unit> before;
    if (recall_ && is_due) before = history_.ledger().units();
    const Stopwatch planning;
    broken_ = true;  // whatever is thrown from here on leaves ledger and cache apart
    try {
        done.upkeep = history_.maintain(limit);
    } catch (const PolicyError &) {  // thrown before anything is changed
        broken_ = false;
        throw;
    }
    done.plan_ms = planning.ms();
    if (!done.upkeep.retention.triggered) {
        broken_ = false;
        return done;
    }

    if (recall_) archive_cuts(before);
    const Stopwatch migrating;
    if (cache_) {
        if (!cache_->relocate(done.upkeep.rows, done.upkeep.freed)) throw Failure{OT_ERR_BROKEN, "llama.cpp could not relocate the cached rows"};
    }
    broken_ = false;
    done.migrate_ms = migrating.ms();
    return done;
}

std::optional<Maintained> Session::take_forced() {
    if (forced_.empty()) return std::nullopt;
    std::optional<Maintained> oldest{std::move(forced_.front())};
    forced_.pop_front();
    return oldest;
}

// --- looking inside --------------------------------------------------------------------------------------------------

const float * Session::logits() const { return logits_ready_ ? llama_get_logits_ith(&context_, -1) : nullptr; }

uint32_t Session::n_vocab() const { return static_cast<uint32_t>(llama_vocab_n_tokens(&vocab_)); }

std::string Session::mismatch() const {
    if (!cache_) return "";
    std::vector<bool> seen(n_cells());
    for (const Unit & unit : history_.ledger().units()) {
        size_t token = 0;
        if (hides_remnants_ && is_remnant(unit)) continue;
        for (const Span & span : unit.spans) {
            for (uint32_t i = 0; i < span.length; ++i, ++token) {
                const Cell cell = unit.cells[token];
                seen[cell] = true;
                const Position expected = token_position(span, i, mrope()).t;
                if (cache_->position(cell) != expected) {
                    return "cell " + std::to_string(cell) + " holds position " + std::to_string(cache_->position(cell)) + ", the ledger says " +
                           std::to_string(expected);
                }
            }
        }
    }
    for (Cell cell = 0; cell < n_cells(); ++cell) {
        if (!seen[cell] && !cache_->is_empty(cell)) return "cell " + std::to_string(cell) + " is in use, but not in the ledger";
    }
    return cache_->disagreement();
}

}  // namespace ot
