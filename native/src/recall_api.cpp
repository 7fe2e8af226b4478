// The C API of recall.
#include "api_common.h"
#include "session_handle.h"

#include <algorithm>
#include <cstring>

using namespace ot;
using namespace ot::api;

namespace {

ot_found to_c(const Found & found) { return {found.id, static_cast<int32_t>(found.kind), found.score, found.start_s, found.end_s}; }

template <typename T, typename From>
void copy(const From & from, T * to, size_t cap, size_t * size) {
    if (size) *size = from.size();
    if (to) std::memcpy(to, from.data(), std::min(cap, from.size()));
}

}  // namespace

ot_recall_params ot_recall_default_params(void) {
    const RecallSettings defaults;
    ot_recall_params p{};
    p.size = sizeof(p);
    p.threshold = defaults.choice.threshold;
    p.share = defaults.choice.share;
    p.memory_bytes = defaults.memory;
    return p;
}

int ot_recall_open(ot_session * s, const ot_recall_params * params) {
    return guarded([&] {
        if (!params || params->size != sizeof(ot_recall_params)) throw Failure{OT_ERR_ARGUMENT, "ot_recall_params has another size: built against another header"};
        RecallSettings settings;
        settings.choice.tokens = params->tokens;
        settings.choice.threshold = params->threshold;
        settings.choice.share = params->share;
        settings.layers.assign(params->layers, params->layers + params->n_layers);
        settings.reference.assign(params->reference, params->reference + params->n_reference);
        settings.memory = params->memory_bytes;
        settings.disk = params->disk_bytes;
        settings.file = params->file ? params->file : "";
        s->session.open_recall(settings);
    });
}

int ot_recall_note(ot_session * s, uint64_t unit, const char * text, size_t n_text, const uint8_t * picture, size_t n_picture) {
    return guarded([&] { s->session.recall().note(unit, {text, text + n_text}, {picture, picture + n_picture}); });
}

int ot_recall_question(ot_session * s, const int32_t * tokens, size_t n, uint32_t reserved, ot_found * units, size_t cap, ot_recalled * out) {
    return guarded([&] {
        const Recalled done = s->session.recall_for(tokens, n, reserved);
        *out = {static_cast<int32_t>(done.verdict), done.clearness, done.tokens, static_cast<uint32_t>(done.units.size()),
                done.searched, done.oldest_s, done.search_ms, done.insert_ms};
        fill(units, cap, [&](auto add) {
            for (const Found & found : done.units) add(to_c(found));
        });
    });
}

int ot_recall_search(ot_session * s, const int32_t * tokens, size_t n, ot_found * units, size_t cap, size_t * n_units) {
    return guarded([&] {
        const std::vector<Found> all = s->session.search(tokens, n);
        *n_units = fill(units, cap, [&](auto add) {
            for (const Found & found : all) add(to_c(found));
        });
    });
}

int ot_recall_units(ot_session * s, const uint64_t * units, size_t n, uint32_t * tokens) {
    return guarded([&] { *tokens = s->session.put_back({units, units + n}); });
}

int ot_recall_dismiss(ot_session * s) {
    return guarded([&] { s->session.dismiss(); });
}

int ot_recall_noted(ot_session * s, uint64_t unit, uint32_t * tokens, char * text, size_t cap_text, size_t * n_text, uint8_t * picture,
                    size_t cap_picture, size_t * n_picture) {
    return guarded([&] {
        const Archive & archive = s->session.recall().archive();
        const size_t index = archive.find(unit);
        if (index == archive.size()) throw Failure{OT_ERR_ARGUMENT, "no archived unit has this number"};
        const StoredUnit & stored = archive.unit(index);
        if (tokens) *tokens = stored.tokens();
        copy(stored.text, text, cap_text, n_text);
        copy(stored.picture, picture, cap_picture, n_picture);
    });
}

int ot_recall_save(ot_session * s, void * out, size_t cap, size_t * size) {
    return guarded([&] { write_state(out, cap, size, [&](ByteWriter & writer) { s->session.save_recall(writer); }); });
}

int ot_recall_restore(ot_session * s, const void * data, size_t size) {
    return guarded([&] {
        ByteReader reader{static_cast<const uint8_t *>(data), size};
        s->session.restore_recall(reader);
    });
}

int ot_recall_archive(const ot_session * s, ot_archive_info * out) {
    return guarded([&] {
        *out = {};
        const Recall * recall = s->session.recall();
        if (!recall) return;
        const ArchiveCounts counts = recall->archive().counts();
        out->units = counts.units;
        out->whole = counts.whole;
        out->thinned = counts.thinned;
        out->bare = counts.bare;
        out->dropped = counts.dropped;
        out->lost = counts.lost;
        out->memory_bytes = counts.memory;
        out->disk_bytes = counts.disk;
        out->index_bytes = counts.index;
        const std::string problem = recall->archive().problem();
        std::memcpy(out->problem, problem.data(), std::min(problem.size(), sizeof(out->problem) - 1));
    });
}
