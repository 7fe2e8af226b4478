// What a session keeps of the units that were cut from its history, and what comes back of them for a question.
#pragma once

#include "bytes.h"
#include "ledger/ledger.h"
#include "recall/archive.h"
#include "recall/choice.h"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ot {

struct RecallSettings {
    ChoiceSettings choice;
    std::vector<uint32_t> layers;  // whose keys and queries tell what a question is about
    std::vector<int32_t> reference;  // a question about nothing in particular; none: scores are shares of attention
    uint64_t memory = 512u << 20;  // bytes
    uint64_t disk = 0;
    std::string file;
};

// A unit that a question's queries point at.
struct Found {
    uint64_t id = 0;
    UnitKind kind = UnitKind::Media;
    double start_s = 0;
    double end_s = 0;
    float score = 0;
    size_t index = 0;  // in the archive, until that takes another unit
};

// How a question was dealt with.
struct Recalled {
    Verdict verdict = Verdict::Nothing;
    float clearness = 0;
    uint32_t tokens = 0;       // that came back
    uint32_t searched = 0;     // units
    double oldest_s = 0;       // begin of the oldest unit searched
    std::vector<Found> units;  // that came back, in the order of time
    double search_ms = 0;      // the question's queries, scores, choice
    double insert_ms = 0;
};

// The archive, and what has been noted of units that are still in the history.
class Recall {
public:
    Recall(const RecallSettings & settings, bool mrope, uint32_t key_size)
        : settings_(settings), mrope_(mrope), key_size_(key_size), archive_(archive_settings(settings, mrope, key_size)) {}

    const RecallSettings & settings() const { return settings_; }
    Archive & archive() { return archive_; }
    const Archive & archive() const { return archive_; }

    void note(uint64_t unit, std::string text, std::vector<uint8_t> picture) { notes_[unit] = {std::move(text), std::move(picture)}; }
    // Forgets what was archived or noted of units from that id on.
    void forget_from(uint64_t unit);
    // Moves what was noted of the unit into it.
    void take_note(StoredUnit & unit);

    // Archive and notes as bytes (recall_state.cpp); see Archive::write and read. read() takes what was written in place of
    // what there is; it throws StateError for what is damaged, Failure for what these settings can't search, and then changes
    // nothing.
    void write(uint64_t row_size, ByteWriter & out);
    void read(uint64_t row_size, uint64_t next_id, ByteReader & in);

    // Every archived unit with its share of what the question asks for, by age; weighed against what `reference` asks for.
    std::vector<Found> search(const Queries & queries, const Queries * reference) const;
    // What is to come back of them: indices into the archive, by age.
    Choice choose(const std::vector<Found> & found, uint32_t room) const;

private:
    struct Note {
        std::string text;
        std::vector<uint8_t> picture;
    };

    static ArchiveSettings archive_settings(const RecallSettings & settings, bool mrope, uint32_t key_size);

    RecallSettings settings_;
    bool mrope_;
    uint32_t key_size_;
    Archive archive_;
    std::unordered_map<uint64_t, Note> notes_;
};

// Whether this archived unit is a question and the next one its answer. They come back together or not at all: half a turn
// would leave the template open.
bool is_turn(const Archive & archive, size_t index);

// Units that were whole in `before` and have lost a token, or all, in `after`: indices into `before`.
std::vector<size_t> first_cuts(const std::vector<Unit> & before, const std::vector<Unit> & after);

// The ledger's unit for what is archived; its cells are still to be found.
Unit unit_of(const StoredUnit & stored);

}  // namespace ot
