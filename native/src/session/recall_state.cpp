// What a session keeps for recall, to bytes and back.
#include "ledger/state.h"
#include "llama/single_rows.h"
#include "omnitide.h"
#include "session/session.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace ot {
namespace {

constexpr uint32_t kVersion = 1;
constexpr size_t kNoteBytes = 24;  // at least

void write_bytes(const void * from, size_t n, ByteWriter & out) {
    if (uint8_t * to = out.room(n); to && n > 0) std::memcpy(to, from, n);
}

}  // namespace

void Recall::write(uint64_t row_size, ByteWriter & out) {
    out.put(kVersion);
    out.put(static_cast<uint8_t>(mrope_));
    out.put(key_size_);
    out.put(row_size);
    out.put(static_cast<uint32_t>(settings_.layers.size()));
    for (const uint32_t layer : settings_.layers) out.put(layer);
    archive_.write(out);

    std::vector<uint64_t> noted;
    for (const auto & note : notes_) noted.push_back(note.first);
    std::sort(noted.begin(), noted.end());
    out.put(static_cast<uint32_t>(noted.size()));
    for (const uint64_t unit : noted) {
        const Note & note = notes_.at(unit);
        out.put(unit);
        out.put(static_cast<uint64_t>(note.text.size()));
        out.put(static_cast<uint64_t>(note.picture.size()));
        write_bytes(note.text.data(), note.text.size(), out);
        write_bytes(note.picture.data(), note.picture.size(), out);
    }
}

void Recall::read(uint64_t row_size, uint64_t next_id, ByteReader & in) {
    if (const auto version = in.get<uint32_t>(); version != kVersion) {
        throw Failure{OT_ERR_UNSUPPORTED, "what was archived has version " + std::to_string(version) + ", this OmniTide reads " + std::to_string(kVersion)};
    }
    const bool mrope = read_flag(in);
    const auto key_size = in.get<uint32_t>();
    const auto rows = in.get<uint64_t>();
    const uint32_t n_layers = in.get_count(sizeof(uint32_t));
    std::vector<uint32_t> layers;
    for (uint32_t i = 0; i < n_layers; ++i) layers.push_back(in.get<uint32_t>());
    if (layers != settings_.layers) throw Failure{OT_ERR_UNSUPPORTED, "what was archived is indexed by other layers than this session searches"};
    if (mrope != mrope_ || key_size != key_size_ || rows != row_size) throw StateError{"its archive is of another model or cache type"};

    Archive archive(archive_settings(settings_, mrope_, key_size_));
    archive.read(in, row_size, next_id);
    std::unordered_map<uint64_t, Note> notes;
    const uint32_t n_notes = in.get_count(kNoteBytes);
    for (uint32_t i = 0; i < n_notes; ++i) {
        const auto unit = in.get<uint64_t>();
        const auto n_text = in.get<uint64_t>();
        const auto n_picture = in.get<uint64_t>();
        if (unit >= next_id || notes.count(unit) > 0) throw StateError{"its archive is damaged (a note)"};
        const uint8_t * text = in.take(n_text);
        const uint8_t * picture = in.take(n_picture);
        notes[unit] = {{text, text + n_text}, {picture, picture + n_picture}};
    }
    if (in.left() != 0) throw StateError{"its archive is longer than it should be"};
    archive_ = std::move(archive);
    notes_ = std::move(notes);
}

void Session::save_recall(ByteWriter & out) {
    require_usable();
    recall().write(row_size(*cache_), out);
}

void Session::restore_recall(ByteReader & in) {
    require_usable();
    recall().read(row_size(*cache_), history_.ledger().next_id(), in);
}

}  // namespace ot
