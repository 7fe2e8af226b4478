// A session: units go in, the history stays bounded and compact, answers come out. Ties encoder, history and llama.cpp
// together. Not thread-safe but for interrupt().
#pragma once

#include "bytes.h"
#include "encode/encoder.h"
#include "llama/attention.h"
#include "llama/memory.h"
#include "llama/rotation.h"
#include "llama/token_rows.h"
#include "session/decode_runs.h"
#include "session/pending_unit.h"
#include "session/history.h"
#include "session/recall.h"

#include <llama.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ot {

// Thrown inside the session, turned into a status and a text at the C API.
struct Failure {
    int status;  // OT_ERR_*
    std::string what;
};

struct SessionSettings {
    HistorySettings history;
    int threads = 2;
    bool stock_memory = false;
    float temperature = 0.0f;
    uint32_t seed = 0;
};

struct Ingested {
    uint64_t unit = 0;
    uint32_t tokens_by_role[7] = {};
    double encode_ms = 0;
    double prefill_ms = 0;
};

struct Maintained {
    Upkeep upkeep;
    double plan_ms = 0;
    double migrate_ms = 0;
};

struct Generated {
    int32_t token = kNoToken;  // kNoToken: the model ended its answer
    std::string piece;  // of any length
};

class Stopwatch {
public:
    double ms() const { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count(); }

private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// While it lives, an interruption stops llama.cpp in mid-graph.
class Abortable {
public:
    explicit Abortable(bool & flag) : flag_(flag) { flag_ = true; }
    ~Abortable() { flag_ = false; }

private:
    bool & flag_;
};

class Session {
public:
    Session(llama_context & context, mtmd_context * mtmd, const SessionSettings & settings);
    ~Session();
    Session(const Session &) = delete;
    Session & operator=(const Session &) = delete;

    void interrupt(bool on) { interrupted_.store(on, std::memory_order_relaxed); }

    // --- units
    void begin(UnitKind kind, double start_s, double end_s);
    void add_tokens(Role role, const int32_t * tokens, size_t n);
    uint32_t add_image(const uint8_t * rgb, uint32_t width, uint32_t height);
    uint32_t add_audio(Sound window, Sound left, Sound right);
    void add_rows(Role role, uint32_t width, uint32_t first, bool continues, const float * rows, size_t n);
    Ingested commit(bool want_logits);
    void abandon() { pending_.reset(); }

    // --- for benchmarks: see the C API
    void fill_cache(uint32_t seed);
    void inject(std::vector<Cell> cells);
    void inject_history(ByteReader & in);
    double dry_run(float * logits, double * attention_ms);

    // --- answers
    void generate_begin(double at_s);
    Generated generate_next();
    uint64_t generate_end(const int32_t * closing, size_t n);
    // The pending unit as a question that is never asked (rehearsal.cpp): the logits after its last token, and up to `most`
    // tokens of the likeliest answer. Nothing is evicted for it, and nothing of it stays.
    std::string foresee(float * logits, uint32_t most);

    // --- maintenance
    Maintained maintain(uint32_t limit);
    // Rounds that a unit or an answer needed for its room, oldest first, each told once.
    std::optional<Maintained> take_forced();

    // --- recall (recalling.cpp): units that retention cuts are kept, and come back for the question that asks for them
    void open_recall(const RecallSettings & settings);
    Recall & recall();  // throws Failure where there is none
    const Recall * recall() const { return recall_.get(); }
    // Every archived unit with its share of the attention of a question's text.
    std::vector<Found> search(const int32_t * tokens, size_t n);
    // Puts back what a question asks for, in place of what was recalled before; `reserved` cells stay free for question and
    // answer. Where nothing stands out, what was recalled before stays.
    Recalled recall_for(const int32_t * tokens, size_t n, uint32_t reserved);
    // Puts back archived units by their ids, which ascend; the tokens that came.
    uint32_t put_back(const std::vector<uint64_t> & ids);
    // Takes out what was recalled; a media unit and a retention do so themselves.
    void dismiss();
    // The archive to bytes and back (recall_state.cpp). Restored after the session that it belongs to; whatever is thrown
    // leaves it as it was.
    void save_recall(ByteWriter & out);
    void restore_recall(ByteReader & in);

    // --- saving. REQUIRES: no unfinished unit or answer.
    void save(ByteWriter & out) const;
    // Takes a saved session in place of what there is, be it broken. Throws StateError and leaves all as it was when
    // the bytes are damaged or of another model.
    void restore(ByteReader & in);

    // --- looking inside
    const History & history() const { return history_; }
    const CacheHandle * cache() const { return cache_.get(); }
    bool flash_attention() const { return uses_flash_attention(context_); }
    Encoder & encoder() { return encoder_; }
    const Encoder & encoder() const { return encoder_; }
    uint32_t n_embd() const { return n_embd_; }
    uint32_t n_cells() const { return history_.layout().size(); }
    bool mrope() const { return history_.ledger().mrope(); }
    const float * logits() const;
    uint32_t n_vocab() const;
    std::string mismatch() const;  // between ledger and cache; empty when they agree

private:
    PendingUnit & pending();
    // What fails while a part is added takes the unit back.
    template <typename Body>
    auto or_take_back(Body && body);
    PendingUnit finished_unit();
    void require_usable() const;
    void require_rest() const;
    void make_room(uint32_t n);
    // Decodes a pending unit whose spans were laid out into `cells`; on failure every cell of it is empty again.
    void decode(const PendingUnit & unit, const std::vector<TokenPosition> & positions, const std::vector<Cell> & cells, bool want_logits);
    void decode_run(const PendingUnit & unit, const std::vector<TokenPosition> & positions, const std::vector<Cell> & cells, const DecodeRun & run,
                    bool want_logits);
    void take_back(const std::vector<Cell> & cells, Position from);
    bool counts_attention() const { return reads_attention(history_.settings().pick); }
    void count_attention();  // of what was decoded last
    void append_tokens(Role role, const std::vector<int32_t> & tokens, bool want_logits);
    std::string foresee_answer(History & scratch, std::vector<Cell> & cells, uint32_t most);
    std::string piece_of(llama_token token) const;
    static bool abort_callback(void * session);
    void start_sampler();
    void archive_cuts(const std::vector<Unit> & before);
    void index(StoredUnit & unit, const std::vector<uint8_t> & rows, const std::vector<RotaryPlace> & places) const;
    Queries rehearse(const int32_t * tokens, size_t n);
    uint32_t insert(std::vector<Found> & found);
    bool is_remnant(const Unit & unit) const { return unit.partial && !unit.recalled && unit.kind == UnitKind::Media; }
    void hide_remnants();
    void show_remnants();

    llama_context & context_;
    const llama_model & model_;
    const llama_vocab & vocab_;
    uint32_t n_embd_;
    uint32_t n_learned_positions_;  // 0: no limit
    bool broken_ = false;
    bool logits_ready_ = false;
    bool abortable_ = false;  // a relocation or an answer's token must not be cut in half
    std::atomic<bool> interrupted_{false};

    std::unique_ptr<CacheHandle> cache_;  // null: llama.cpp's own memory
    History history_;
    AttentionProbe probe_;
    Encoder encoder_;
    TokenRows token_rows_;
    bool rows_as_tokens_ = false;  // text may be given as rows
    std::optional<PendingUnit> pending_;
    std::deque<Maintained> forced_;
    std::unique_ptr<Recall> recall_;  // null: what is cut is gone
    bool hides_remnants_ = false;     // what is left of older seconds is hidden from attention

    struct FreeSampler {
        void operator()(llama_sampler * sampler) const { llama_sampler_free(sampler); }
    };
    std::unique_ptr<llama_sampler, FreeSampler> sampler_;  // of the answer in hand
    float temperature_;
    uint32_t seed_;

    struct Answer {
        double at_s = 0;
        bool started = false;  // its unit is in the ledger
    };
    std::optional<Answer> answer_;
};

}  // namespace ot
