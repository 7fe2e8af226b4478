#include "recall/archive.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ot {
namespace {

constexpr std::array<uint32_t, 3> kLevels{64, 16, 0};  // tokens

}  // namespace

Archive::Archive(ArchiveSettings settings) : settings_(std::move(settings)), thinned_(kLevels.size(), 0) {
    if (settings_.disk > 0 && !settings_.file.empty()) file_ = std::make_unique<RowFile>(settings_.file, settings_.disk);
}

uint64_t Archive::memory_of(const Entry & entry) const {
    const StoredUnit & unit = entry.unit;
    return sizeof(Entry) + entry.rows.size() + unit.spans.size() * sizeof(Span) + unit.telling.size() * sizeof(uint32_t) +
           unit.keys.size() * sizeof(uint16_t) + unit.text.size() + unit.picture.size();
}

// Everything that changes what an entry takes goes through here.
template <typename Change>
void Archive::change(Entry & entry, Change && apply) {
    memory_ -= memory_of(entry);
    apply();
    memory_ += memory_of(entry);
}

void Archive::add(StoredUnit unit, std::vector<uint8_t> rows) {
    Entry entry;
    entry.unit = std::move(unit);
    entry.size = rows.size();
    entry.rows = std::move(rows);
    insert(std::move(entry));
}

void Archive::insert(Entry entry) {
    const uint64_t id = entry.unit.id;
    const auto behind = std::lower_bound(entries_.begin(), entries_.end(), id, [](const Entry & each, uint64_t wanted) { return each.unit.id < wanted; });
    if (behind != entries_.end() && behind->unit.id == id) return;  // the session was set back to before it was cut
    const auto at = static_cast<size_t>(behind - entries_.begin());
    memory_ += memory_of(entry);
    entries_.insert(behind, std::move(entry));
    for (size_t * cursor : {&spilled_, &coarse_, &pictureless_}) *cursor = std::min(*cursor, at);
    for (size_t & cursor : thinned_) cursor = std::min(cursor, at);
    while (memory_ > settings_.memory && relieve()) {
    }
}

IndexedKeys Archive::keys(size_t index) const {
    const std::vector<uint16_t> & keys = entries_[index].unit.keys;
    return {keys.data(), settings_.key_size > 0 ? static_cast<uint32_t>(keys.size() / settings_.key_size) : 0};
}

bool Archive::rows(size_t index, std::vector<uint8_t> & out) {
    Entry & entry = entries_[index];
    if (entry.size == 0) return false;
    if (!entry.rows.empty()) {
        out = entry.rows;
        return true;
    }
    if (file_->get(entry.extent, out)) return true;
    lose(entry);
    return false;
}

void Archive::lose(Entry & entry) {
    lost_ += 1;
    file_->free(entry.extent);
    change(entry, [&] {
        thin(entry.unit, 0, settings_.mrope);
        entry.extent = {};
        entry.size = 0;
    });
}

size_t Archive::find(uint64_t id) const {
    const auto found = std::lower_bound(entries_.begin(), entries_.end(), id, [](const Entry & entry, uint64_t wanted) { return entry.unit.id < wanted; });
    return found != entries_.end() && found->unit.id == id ? static_cast<size_t>(found - entries_.begin()) : size();
}

void Archive::forget_from(uint64_t id) {
    while (!entries_.empty() && entries_.back().unit.id >= id) {
        memory_ -= memory_of(entries_.back());
        if (file_) file_->free(entries_.back().extent);
        entries_.pop_back();
    }
    for (size_t * cursor : {&spilled_, &coarse_, &pictureless_}) *cursor = std::min(*cursor, entries_.size());
    for (size_t & cursor : thinned_) cursor = std::min(cursor, entries_.size());
}

ArchiveCounts Archive::counts() const {
    ArchiveCounts counts;
    counts.units = static_cast<uint32_t>(entries_.size());
    for (const Entry & entry : entries_) {
        (entry.size == 0 ? counts.bare : entry.unit.tokens() < entry.unit.whole_tokens ? counts.thinned : counts.whole) += 1;
        counts.index += entry.unit.keys.size() * sizeof(uint16_t);
    }
    counts.dropped = dropped_;
    counts.lost = lost_;
    counts.memory = memory_;
    counts.disk = file_ ? file_->used() : 0;
    return counts;
}

// --- what gives way ------------------------------------------------------------------------------------------------------

bool Archive::relieve() { return spill() || thin_next() || coarsen_next() || drop_picture() || drop_oldest(); }

// The oldest unit from `cursor` on that isn't `done`; `cursor` moves to it. Null when all are.
template <typename Done>
Archive::Entry * Archive::next(size_t & cursor, Done && done) {
    while (cursor < entries_.size() && done(entries_[cursor])) ++cursor;
    return cursor < entries_.size() ? &entries_[cursor] : nullptr;
}

bool Archive::to_disk(Entry & entry) {
    const std::optional<Extent> extent = file_->put(entry.rows);
    if (!extent) return false;
    change(entry, [&] {
        entry.extent = *extent;
        entry.rows = {};
    });
    return true;
}

bool Archive::spill() {
    if (!file_ || !file_->problem().empty()) return false;
    Entry * entry = next(spilled_, [](const Entry & each) { return each.rows.empty(); });
    return entry && to_disk(*entry);  // else the file is full: thinning makes room in it
}

bool Archive::thin_next() {
    for (size_t level = 0; level < kLevels.size(); ++level) {
        Entry * entry = next(thinned_[level], [&](const Entry & each) { return each.size == 0 || each.unit.tokens() <= kLevels[level]; });
        if (!entry) continue;
        thin_to(*entry, kLevels[level]);
        return true;
    }
    return false;
}

void Archive::thin_to(Entry & entry, uint32_t most) {
    const uint64_t row = entry.size / entry.unit.tokens();
    std::vector<uint8_t> old = std::move(entry.rows);
    const bool on_disk = old.empty();
    memory_ -= on_disk ? 0 : old.size();  // what was moved out is no longer counted by `change`
    if (on_disk) {
        if (most > 0 && !file_->get(entry.extent, old)) {
            lost_ += 1;
            most = 0;
        }
        file_->free(entry.extent);
        entry.extent = {};
    }
    change(entry, [&] {
        const std::vector<uint32_t> kept = thin(entry.unit, most, settings_.mrope);
        std::vector<uint8_t> rows;
        rows.reserve(kept.size() * row);
        for (const uint32_t token : kept) rows.insert(rows.end(), old.begin() + static_cast<std::ptrdiff_t>(token * row), old.begin() + static_cast<std::ptrdiff_t>((token + 1) * row));
        entry.size = rows.size();
        if (on_disk && !rows.empty()) {
            if (const std::optional<Extent> extent = file_->put(rows)) {
                entry.extent = *extent;
                return;
            }
        }
        entry.rows = std::move(rows);
    });
    if (entry.rows.empty()) return;
    spilled_ = std::min(spilled_, static_cast<size_t>(std::find_if(entries_.begin(), entries_.end(), [&](const Entry & each) { return &each == &entry; }) - entries_.begin()));
}

bool Archive::coarsen_next() {
    Entry * entry = next(coarse_, [&](const Entry & each) { return each.unit.keys.size() <= settings_.key_size; });
    if (!entry) return false;
    change(*entry, [&] {
        std::vector<uint16_t> & keys = entry->unit.keys;
        keys = std::vector<uint16_t>(keys.end() - static_cast<std::ptrdiff_t>(settings_.key_size), keys.end());
    });
    return true;
}

bool Archive::drop_picture() {
    Entry * entry = next(pictureless_, [](const Entry & each) { return each.unit.picture.empty(); });
    if (!entry) return false;
    change(*entry, [&] { entry->unit.picture = {}; });
    return true;
}

bool Archive::drop_oldest() {
    if (entries_.empty()) return false;
    memory_ -= memory_of(entries_.front());
    if (file_) file_->free(entries_.front().extent);
    entries_.pop_front();
    dropped_ += 1;
    for (size_t * cursor : {&spilled_, &coarse_, &pictureless_}) *cursor -= *cursor > 0;
    for (size_t & cursor : thinned_) cursor -= cursor > 0;
    return true;
}

}  // namespace ot
