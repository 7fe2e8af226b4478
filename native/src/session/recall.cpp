#include "session/recall.h"

#include <algorithm>
#include <iterator>

namespace ot {
bool is_turn(const Archive & archive, size_t index) {
    return index + 1 < archive.size() && archive.unit(index).kind == UnitKind::Question && archive.unit(index + 1).kind == UnitKind::Response &&
           archive.unit(index).id + 1 == archive.unit(index + 1).id;
}

ArchiveSettings Recall::archive_settings(const RecallSettings & settings, bool mrope, uint32_t key_size) {
    ArchiveSettings archive;
    archive.mrope = mrope;
    archive.key_size = key_size;
    archive.memory = settings.memory;
    archive.disk = settings.disk;
    archive.file = settings.file;
    return archive;
}

void Recall::forget_from(uint64_t unit) {
    archive_.forget_from(unit);
    for (auto note = notes_.begin(); note != notes_.end();) note = note->first >= unit ? notes_.erase(note) : std::next(note);
}

void Recall::take_note(StoredUnit & unit) {
    const auto note = notes_.find(unit.id);
    if (note == notes_.end()) return;
    unit.text = std::move(note->second.text);
    unit.picture = std::move(note->second.picture);
    notes_.erase(note);
}

std::vector<Found> Recall::search(const Queries & queries, const Queries * reference) const {
    std::vector<IndexedKeys> keys;
    for (size_t i = 0; i < archive_.size(); ++i) keys.push_back(archive_.keys(i));
    std::vector<float> scores = masses(keys, queries);
    if (reference) scores = against(scores, masses(keys, *reference));
    std::vector<Found> found;
    for (size_t i = 0; i < archive_.size(); ++i) {
        const StoredUnit & unit = archive_.unit(i);
        found.push_back({unit.id, unit.kind, unit.start_s, unit.end_s, scores[i], i});
    }
    return found;
}

Choice Recall::choose(const std::vector<Found> & found, uint32_t room) const {
    // One candidate a second, or a question with its answer; half of such a pair can't come back. The better half is what the
    // pair scores: with both, whatever was asked before in like words would be ahead of what was seen.
    std::vector<Candidate> candidates;
    std::vector<size_t> first;
    for (size_t i = 0; i < found.size(); ++i) {
        const StoredUnit & unit = archive_.unit(i);
        Candidate candidate{found[i].score, archive_.has_rows(i) ? unit.tokens() : 0, unit.start_s, unit.end_s};
        first.push_back(i);
        if (is_turn(archive_, i)) {
            const bool both = candidate.tokens > 0 && archive_.has_rows(i + 1);
            candidate.score = std::max(candidate.score, found[i + 1].score);
            candidate.tokens = both ? candidate.tokens + archive_.unit(i + 1).tokens() : 0;
            ++i;
        } else if (unit.kind != UnitKind::Media) {
            candidate.score = 0;
        }
        candidates.push_back(candidate);
    }
    std::vector<IndexedKeys> keys;
    for (const size_t index : first) keys.push_back(archive_.keys(index));
    const size_t key_size = found.empty() || keys.front().n_keys == 0 ? 0 : archive_.unit(first.front()).keys.size() / keys.front().n_keys;
    const Likeness alike{keys, key_size};
    ChoiceSettings settings = settings_.choice;
    settings.tokens = std::min(settings.tokens, room);
    Choice choice = ot::choose(candidates, settings, [&](size_t a, size_t b) { return alike(a, b); });
    std::vector<size_t> units;
    for (const size_t chosen : choice.units) {
        units.push_back(first[chosen]);
        if (is_turn(archive_, first[chosen])) units.push_back(first[chosen] + 1);
    }
    choice.units = std::move(units);
    return choice;
}

std::vector<size_t> first_cuts(const std::vector<Unit> & before, const std::vector<Unit> & after) {
    std::vector<size_t> cuts;
    auto left = after.begin();
    for (size_t i = 0; i < before.size(); ++i) {
        while (left != after.end() && left->id < before[i].id) ++left;
        const bool is_whole = left != after.end() && left->id == before[i].id && !left->partial;
        if (!is_whole && !before[i].partial && !before[i].recalled && before[i].kind != UnitKind::System) cuts.push_back(i);
    }
    return cuts;
}

Unit unit_of(const StoredUnit & stored) {
    Unit unit;
    unit.id = stored.id;
    unit.kind = stored.kind;
    unit.partial = stored.tokens() < stored.whole_tokens;
    unit.recalled = true;
    unit.start_s = stored.start_s;
    unit.end_s = stored.end_s;
    unit.spans = stored.spans;
    return unit;
}

}  // namespace ot
