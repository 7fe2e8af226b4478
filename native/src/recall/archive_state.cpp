// An archive to bytes and back: what of it a saved session holds (docs/session-file.md, the section RCLL).
//
// What is read may come from anyone: whatever a recall or a search relies on is checked here.
#include "ledger/state.h"
#include "ledger/violation.h"
#include "recall/archive.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

namespace ot {
namespace {

constexpr size_t kUnitBytes = 58;  // at least
constexpr uint8_t kOnDisk = 1;
constexpr uint16_t kNoNumber = 0x7c00;  // the exponent of infinities and of what is no number

template <typename T>
void write_all(const std::vector<T> & values, ByteWriter & out) {
    if (uint8_t * to = out.room(values.size() * sizeof(T)); to && !values.empty()) std::memcpy(to, values.data(), values.size() * sizeof(T));
}

template <typename T>
std::vector<T> read_all(uint64_t n, ByteReader & in) {
    if (n > in.left() / sizeof(T)) throw StateError{"it ends too early"};
    const uint8_t * from = in.take(static_cast<size_t>(n) * sizeof(T));
    std::vector<T> values(static_cast<size_t>(n));
    if (n > 0) std::memcpy(values.data(), from, values.size() * sizeof(T));
    return values;
}

[[noreturn]] void damaged(const std::string & what) { throw StateError{"its archive is damaged (" + what + ")"}; }

bool is_order(const std::vector<uint32_t> & telling, uint32_t tokens) {
    std::vector<bool> seen(tokens, false);
    for (const uint32_t token : telling) {
        if (token >= tokens || seen[token]) return false;
        seen[token] = true;
    }
    return telling.size() == tokens;
}

// Why this can't be an archived unit of `tokens` stored tokens; empty when it can.
std::string complaint(const StoredUnit & unit, uint32_t tokens, bool mrope, uint64_t next_id) {
    if (unit.kind == UnitKind::System) return "a system unit";
    if (!std::isfinite(unit.start_s) || !std::isfinite(unit.end_s)) return "a time";
    if (unit.whole_tokens < tokens || unit.whole_tokens > kLongestSpan) return "the number of a unit's tokens";
    if (!is_order(unit.telling, tokens)) return "the order of a unit's tokens";
    for (const uint16_t key : unit.keys) {
        if ((key & kNoNumber) == kNoNumber) return "a key";  // scores of no number have no order
    }
    if (tokens == 0) {
        if (unit.id >= next_id) return "the number of a unit";
        return unit.spans.empty() ? "" : "the number of a unit's tokens";
    }
    Unit alone;  // as it would be put back
    alone.id = unit.id;
    alone.kind = unit.kind;
    alone.spans = unit.spans;
    alone.cells.resize(tokens);
    std::iota(alone.cells.begin(), alone.cells.end(), Cell{0});
    return violation({alone}, mrope, next_id, kMostPositions, tokens);
}

}  // namespace

void Archive::write_entry(Entry & entry, ByteWriter & out) {
    std::vector<uint8_t> stored;
    const bool on_disk = entry.size > 0 && entry.rows.empty();
    if (on_disk && out.is_writing() && !file_->get(entry.extent, stored)) lose(entry);
    const StoredUnit & unit = entry.unit;
    out.put(unit.id);
    out.put(static_cast<uint8_t>(unit.kind));
    out.put(static_cast<uint8_t>(on_disk && entry.size > 0 ? kOnDisk : 0));
    out.put(unit.start_s);
    out.put(unit.end_s);
    out.put(unit.whole_tokens);
    out.put(unit.tokens());
    out.put(static_cast<uint32_t>(unit.spans.size()));
    out.put(static_cast<uint32_t>(unit.keys.size() / settings_.key_size));
    out.put(static_cast<uint64_t>(unit.text.size()));
    out.put(static_cast<uint64_t>(unit.picture.size()));
    for (const Span & span : unit.spans) write_span(span, out);
    write_all(unit.telling, out);
    write_all(unit.keys, out);
    write_all(std::vector<uint8_t>(unit.text.begin(), unit.text.end()), out);
    write_all(unit.picture, out);
    if (entry.size == 0) return;
    if (!on_disk) {
        write_all(entry.rows, out);
    } else if (out.is_writing()) {
        write_all(stored, out);
    } else {
        out.room(entry.size);
    }
}

void Archive::write(ByteWriter & out) {
    out.put(dropped_);
    out.put(lost_);
    out.put(static_cast<uint32_t>(entries_.size()));
    for (Entry & entry : entries_) write_entry(entry, out);
}

void Archive::read(ByteReader & in, uint64_t row_size, uint64_t next_id) {
    const auto dropped = in.get<uint64_t>();
    const auto lost = in.get<uint64_t>();
    const uint32_t n_units = in.get_count(kUnitBytes);
    uint64_t least_id = 0;
    for (uint32_t i = 0; i < n_units; ++i) {
        Entry entry;
        StoredUnit & unit = entry.unit;
        unit.id = in.get<uint64_t>();
        if (unit.id < least_id) damaged("the order of units");
        least_id = unit.id + 1;
        unit.kind = read_enum(in, UnitKind::Response, "kind of unit");
        const auto flags = in.get<uint8_t>();
        if (flags > kOnDisk) throw StateError{"a unit has an unknown property"};
        unit.start_s = in.get<double>();
        unit.end_s = in.get<double>();
        unit.whole_tokens = in.get<uint32_t>();
        const uint32_t tokens = in.get_count(sizeof(uint32_t) + row_size);
        const uint32_t n_spans = in.get_count(kSpanBytes);
        const uint32_t n_keys = in.get_count(settings_.key_size * sizeof(uint16_t));
        const auto n_text = in.get<uint64_t>();
        const auto n_picture = in.get<uint64_t>();
        if (n_keys == 0) damaged("a unit that can't be searched");
        unit.spans.reserve(n_spans);
        for (uint32_t span = 0; span < n_spans; ++span) unit.spans.push_back(read_span(in));
        unit.telling = read_all<uint32_t>(tokens, in);
        unit.keys = read_all<uint16_t>(uint64_t{n_keys} * settings_.key_size, in);
        const std::vector<uint8_t> text = read_all<uint8_t>(n_text, in);
        unit.text.assign(text.begin(), text.end());
        unit.picture = read_all<uint8_t>(n_picture, in);
        entry.rows = read_all<uint8_t>(tokens * row_size, in);
        entry.size = entry.rows.size();
        if (const std::string what = complaint(unit, tokens, settings_.mrope, next_id); !what.empty()) damaged(what);
        const bool was_on_disk = (flags & kOnDisk) != 0 && entry.size > 0;
        if (was_on_disk && file_ && file_->problem().empty()) {  // where it was, so that the budgets hold what they held
            if (const std::optional<Extent> extent = file_->put(entry.rows)) {
                entry.extent = *extent;
                entry.rows = {};
            }
        }
        insert(std::move(entry));
    }
    dropped_ += dropped;
    lost_ += lost;
}

}  // namespace ot
