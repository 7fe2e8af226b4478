// A session's recall: units that retention cuts go to the archive; for a question, those that it asks for come back.
#include "session/session.h"

#include "llama/queries.h"
#include "llama/single_rows.h"
#include "omnitide.h"
#include "recall/half.h"

#include <llama.h>

#include <algorithm>
#include <utility>

namespace ot {
namespace {

// Spans at the positions that their tokens' keys were computed for. Tokens of a span have shifted together, but for those of an
// answer that grew on after a retention: they are pieces of it.
std::vector<Span> computed_spans(const std::vector<Span> & spans, const std::vector<int32_t> & shifted_by) {
    std::vector<Span> pieces;
    size_t token = 0;
    for (const Span & span : spans) {
        for (uint32_t begin = 0, end = 0; begin < span.length; begin = end) {
            const int32_t shift = shifted_by[token + begin];
            for (end = begin + 1; end < span.length && shifted_by[token + end] == shift;) ++end;
            Span piece = span;
            piece.length = end - begin;
            piece.first += begin;
            piece.base += static_cast<Position>(begin) - shift;  // a raster is one piece: its base stays
            piece.continues = span.continues || begin > 0;
            piece.rotations = 0;
            pieces.push_back(piece);
        }
        token += span.length;
    }
    return pieces;
}

RotaryPlace place_of(const TokenPosition & position, Position shifted_by = 0) {
    return {position.t - shifted_by, position.y - shifted_by, position.x - shifted_by};
}

}  // namespace

void Session::open_recall(const RecallSettings & settings) {
    require_usable();
    if (!cache_) throw Failure{OT_ERR_UNSUPPORTED, "a session on llama.cpp's own memory recalls nothing"};
    if (settings.layers.empty()) throw Failure{OT_ERR_ARGUMENT, "recall needs a layer to search by"};
    size_t key_size = 0;
    for (size_t i = 0; i < settings.layers.size(); ++i) {
        const uint32_t layer = settings.layers[i];
        if (i > 0 && settings.layers[i - 1] >= layer) throw Failure{OT_ERR_ARGUMENT, "layers to search by must ascend"};
        if (cache_->key_width(layer) == 0) throw Failure{OT_ERR_ARGUMENT, "the model has no layer " + std::to_string(layer) + " to search by"};
        if (!Rotation::is_known(context_, layer)) throw Failure{OT_ERR_UNSUPPORTED, "the model's positions are of a kind that recall doesn't know"};
        if (cache_->key_width(layer) != cache_->key_width(settings.layers.front())) throw Failure{OT_ERR_UNSUPPORTED, "the model's layers differ in their heads"};
        key_size += cache_->key_width(layer);
    }
    recall_ = std::make_unique<Recall>(settings, mrope(), static_cast<uint32_t>(key_size));
}

Recall & Session::recall() {
    if (!recall_) throw Failure{OT_ERR_ARGUMENT, "this session recalls nothing"};
    return *recall_;
}

// REQUIRES: the ledger has been cut, the cache's rows still lie where `before` says.
void Session::archive_cuts(const std::vector<Unit> & before) {
    for (const size_t cut : first_cuts(before, history_.ledger().units())) {
        const Unit & unit = before[cut];
        SingleRows rows = read_single_rows(*cache_, unit.cells);
        StoredUnit stored;
        stored.id = unit.id;
        stored.kind = unit.kind;
        stored.start_s = unit.start_s;
        stored.end_s = unit.end_s;
        stored.spans = computed_spans(unit.spans, rows.shifted_by);
        stored.whole_tokens = unit.tokens();
        const std::vector<TokenPosition> positions = token_positions(unit.spans, mrope());
        std::vector<RotaryPlace> places;
        for (size_t i = 0; i < positions.size(); ++i) places.push_back(place_of(positions[i], rows.shifted_by[i]));
        index(stored, rows.bytes, places);
        recall_->take_note(stored);
        recall_->archive().add(std::move(stored), std::move(rows.bytes));
    }
}

void Session::index(StoredUnit & unit, const std::vector<uint8_t> & rows, const std::vector<RotaryPlace> & places) const {
    const std::vector<uint32_t> & layers = recall_->settings().layers;
    const std::vector<TokenRun> runs = pooled_runs(unit.spans);
    for (size_t layer = 0; layer < layers.size(); ++layer) {
        const std::vector<float> keys = bare_keys(*cache_, context_, layers[layer], rows, places);
        const size_t width = keys.size() / places.size();
        if (layer == 0) {
            unit.telling = by_telling(unit.spans, keys);
            unit.keys.resize(runs.size() * layers.size() * width);
        }
        std::vector<float> mean(width);
        for (size_t run = 0; run < runs.size(); ++run) {
            std::fill(mean.begin(), mean.end(), 0.0f);
            for (uint32_t token = runs[run].begin; token < runs[run].end; ++token) {
                for (size_t i = 0; i < width; ++i) mean[i] += keys[token * width + i];
            }
            uint16_t * to = unit.keys.data() + (run * layers.size() + layer) * width;
            for (size_t i = 0; i < width; ++i) to[i] = to_half(mean[i] / static_cast<float>(runs[run].end - runs[run].begin));
        }
    }
}

// What retention left of older seconds is in the way of what comes back whole: it draws the question's queries and the answer
// to other seconds. So it is hidden meanwhile: no row changes, and none moves for it.
void Session::hide_remnants() {
    hides_remnants_ = true;
    for (const Unit & unit : history_.ledger().units()) {
        if (is_remnant(unit)) cache_->hide(unit.cells);
    }
}

void Session::show_remnants() {
    if (!hides_remnants_) return;
    hides_remnants_ = false;
    for (const Unit & unit : history_.ledger().units()) {
        if (!is_remnant(unit)) continue;
        const std::vector<TokenPosition> positions = token_positions(unit.spans, mrope());
        for (size_t i = 0; i < positions.size(); ++i) cache_->occupy(unit.cells[i], positions[i].t, positions[i].y, positions[i].x);
    }
}

// The text's queries, from a prefill that leaves no trace.
Queries Session::rehearse(const int32_t * tokens, size_t n) {
    if (answer_ || pending_) throw Failure{OT_ERR_ARGUMENT, "a unit or an answer is in the making"};
    begin(UnitKind::Question, 0, 0);
    PendingUnit unit;
    try {
        add_tokens(Role::Text, tokens, n);
        unit = finished_unit();
    } catch (...) {
        pending_.reset();
        throw;
    }
    make_room(unit.size());
    history_.lay_out(unit.spans);
    const std::vector<TokenPosition> positions = token_positions(unit.spans, mrope());
    const std::vector<Cell> cells = History(history_).place(unit.size());
    std::vector<RotaryPlace> places;
    for (const TokenPosition & position : positions) places.push_back(place_of(position));

    const std::vector<uint32_t> & layers = recall_->settings().layers;
    Queries queries;
    // Shown again whatever happens, unless they were hidden before.
    struct Hiding {
        Session & session;
        bool was_hidden;
        ~Hiding() {
            if (!was_hidden) session.show_remnants();
        }
    } const hiding{*this, hides_remnants_};
    hide_remnants();
    {
        const QueryProbe probe{context_, layers};
        {
            const Abortable scope{abortable_};
            decode(unit, positions, cells, false);
        }
        take_back(cells, positions.front().t);
        queries.values = probe.take(places);
        queries.heads = probe.n_heads(layers.front());
    }
    if (queries.values.empty()) throw Failure{OT_ERR_UNSUPPORTED, "llama.cpp doesn't show this model's queries"};
    queries.layers = static_cast<uint32_t>(layers.size());
    queries.tokens = unit.size();
    queries.head = Rotation{context_, layers.front()}.head();
    queries.key_heads = static_cast<uint32_t>(cache_->key_width(layers.front())) / queries.head;
    queries.scale = attention_scale(context_, queries.head);
    return queries;
}

std::vector<Found> Session::search(const int32_t * tokens, size_t n) {
    require_usable();
    Recall & from = recall();
    if (from.archive().size() == 0) return {};
    const Queries asked = rehearse(tokens, n);
    const std::vector<int32_t> & reference = from.settings().reference;
    if (reference.empty()) return from.search(asked, nullptr);
    const Queries about_nothing = rehearse(reference.data(), reference.size());
    return from.search(asked, &about_nothing);
}

Recalled Session::recall_for(const int32_t * tokens, size_t n, uint32_t reserved) {
    const Stopwatch searching;
    Recalled done;
    const std::vector<Found> found = search(tokens, n);
    done.searched = static_cast<uint32_t>(found.size());
    if (!found.empty()) done.oldest_s = found.front().start_s;
    const uint32_t free = history_.free_cells() + history_.ledger().recalled_tokens();
    const Choice choice = recall().choose(found, free > reserved ? free - reserved : 0);
    done.verdict = choice.verdict;
    done.clearness = choice.clearness;
    done.search_ms = searching.ms();
    if (choice.verdict != Verdict::Recalled) return done;

    const Stopwatch inserting;
    dismiss();
    for (const size_t index : choice.units) done.units.push_back(found[index]);
    done.tokens = insert(done.units);
    if (done.units.empty()) done.verdict = Verdict::NoRoom;
    done.insert_ms = inserting.ms();
    return done;
}

uint32_t Session::put_back(const std::vector<uint64_t> & ids) {
    require_usable();
    if (answer_ || pending_) throw Failure{OT_ERR_ARGUMENT, "a unit or an answer is in the making"};
    const Archive & archive = recall().archive();
    std::vector<Found> found;
    uint32_t needed = 0;
    for (const uint64_t id : ids) {
        const size_t index = archive.find(id);
        if (index == archive.size()) throw Failure{OT_ERR_ARGUMENT, "unit " + std::to_string(id) + " is not archived"};
        if (!found.empty() && found.back().index >= index) throw Failure{OT_ERR_ARGUMENT, "units to put back must ascend"};
        Found each;
        each.id = id;
        each.index = index;
        found.push_back(each);
        needed += archive.unit(index).tokens();
    }
    dismiss();
    if (needed > history_.free_cells()) throw Failure{OT_ERR_NO_ROOM, "the cache has no room for " + std::to_string(needed) + " recalled tokens"};
    return insert(found);
}

// Puts archived units back; those that can't be read are left out of `found`, and so is the other half of their turn.
uint32_t Session::insert(std::vector<Found> & found) {
    Archive & archive = recall().archive();
    std::vector<std::vector<uint8_t>> read(found.size());
    for (size_t i = 0; i < found.size(); ++i) {
        if (!archive.rows(found[i].index, read[i])) read[i].clear();
    }
    for (size_t i = 0; i + 1 < found.size(); ++i) {
        if (!is_turn(archive, found[i].index) || found[i + 1].index != found[i].index + 1) continue;
        if (read[i].empty() || read[i + 1].empty()) read[i] = read[i + 1] = {};
    }
    std::vector<Unit> units;
    std::vector<uint8_t> bytes;
    std::vector<TokenPosition> old;
    std::vector<Found> left;
    for (size_t i = 0; i < found.size(); ++i) {
        const Found & each = found[i];
        const std::vector<uint8_t> & rows = read[i];
        if (rows.empty()) continue;
        const StoredUnit & stored = archive.unit(each.index);
        units.push_back(unit_of(stored));
        bytes.insert(bytes.end(), rows.begin(), rows.end());
        const std::vector<TokenPosition> positions = token_positions(stored.spans, mrope());
        old.insert(old.end(), positions.begin(), positions.end());
        left.push_back(each);
    }
    found = std::move(left);
    if (units.empty()) return 0;

    logits_ready_ = false;
    broken_ = true;  // whatever is thrown from here on leaves ledger and cache apart
    Recollection done = history_.recall(std::move(units));
    if (done.cells.empty()) {
        broken_ = false;
        found.clear();
        return 0;
    }
    write_single_rows(*cache_, done.cells, bytes);
    for (size_t i = 0; i < done.cells.size(); ++i) cache_->occupy(done.cells[i], old[i].t, old[i].y, old[i].x);
    std::vector<Row> moves = std::move(done.rows);
    size_t token = 0;
    for (const Unit & unit : history_.ledger().units()) {
        if (!unit.recalled) continue;
        for (const TokenPosition & now : token_positions(unit.spans, mrope())) {
            if (const Position delta = now.t - old[token].t; delta != 0) moves.push_back({done.cells[token], done.cells[token], delta});
            ++token;
        }
    }
    if (!cache_->relocate(moves, {})) throw Failure{OT_ERR_BROKEN, "llama.cpp could not shift the cached rows"};
    hide_remnants();
    broken_ = false;
    return static_cast<uint32_t>(done.cells.size());
}

void Session::dismiss() {
    require_usable();
    if (history_.ledger().recalled_tokens() == 0) return;
    logits_ready_ = false;
    broken_ = true;
    show_remnants();
    const Recollection done = history_.dismiss();
    if (cache_ && !cache_->relocate(done.rows, done.cells)) throw Failure{OT_ERR_BROKEN, "llama.cpp could not shift the cached rows"};
    broken_ = false;
}

}  // namespace ot
