#include "session/history_state.h"

#include "ledger/state.h"
#include "ledger/violation.h"

#include <string>
#include <utility>
#include <vector>

namespace ot {
namespace {

// Bytes that each takes at least.
constexpr size_t kUnitBytes = 34;
constexpr size_t kCellBytes = 4;

// Properties of a unit, bit by bit.
constexpr uint8_t kPartial = 1;
constexpr uint8_t kScored = 2;  // a score a token follows the cells
constexpr uint8_t kRecalled = 4;

void write_unit(const Unit & unit, ByteWriter & out) {
    out.put(unit.id);
    out.put(static_cast<uint8_t>(unit.kind));
    out.put(static_cast<uint8_t>((unit.partial ? kPartial : 0) | (unit.scores.empty() ? 0 : kScored) | (unit.recalled ? kRecalled : 0)));
    out.put(unit.start_s);
    out.put(unit.end_s);
    out.put(static_cast<uint32_t>(unit.spans.size()));
    out.put(static_cast<uint32_t>(unit.cells.size()));
    for (const Span & span : unit.spans) write_span(span, out);
    for (const Cell cell : unit.cells) out.put(cell);
    for (const double score : unit.scores) out.put(score);
}

Unit read_unit(ByteReader & in) {
    Unit unit;
    unit.id = in.get<uint64_t>();
    unit.kind = read_enum(in, UnitKind::Response, "kind of unit");
    const auto flags = in.get<uint8_t>();
    if (flags > (kPartial | kScored | kRecalled)) throw StateError{"a unit has an unknown property"};
    unit.partial = (flags & kPartial) != 0;
    unit.recalled = (flags & kRecalled) != 0;
    unit.start_s = in.get<double>();
    unit.end_s = in.get<double>();
    const uint32_t n_spans = in.get_count(kSpanBytes);
    const uint32_t n_cells = in.get_count(kCellBytes);
    if (n_spans == 0) throw StateError{"its history is damaged (a unit without spans)"};  // or small units fill the memory first
    unit.spans.reserve(n_spans);
    for (uint32_t i = 0; i < n_spans; ++i) unit.spans.push_back(read_span(in));
    unit.cells.reserve(n_cells);
    for (uint32_t i = 0; i < n_cells; ++i) unit.cells.push_back(in.get<Cell>());
    for (uint32_t i = 0; i < n_cells && (flags & kScored) != 0; ++i) unit.scores.push_back(in.get<double>());
    return unit;
}

}  // namespace

void write_history(const History & history, ByteWriter & out) {
    const Ledger & ledger = history.ledger();
    out.put(static_cast<uint8_t>(ledger.mrope()));
    out.put(static_cast<uint8_t>(history.placement()));
    out.put(history.head());
    out.put(ledger.next_id());
    out.put(ledger.next_position());
    out.put(static_cast<uint32_t>(ledger.units().size()));
    for (const Unit & unit : ledger.units()) write_unit(unit, out);
}

History read_history(ByteReader & in, bool mrope, uint32_t n_cells, const HistorySettings & settings) {
    if (read_flag(in) != mrope) throw StateError{"its positions are of a different kind from this model's"};
    const Placement placement = read_enum(in, Placement::Native, "placement");
    const Cell head = in.get<Cell>();
    const auto next_id = in.get<uint64_t>();
    const auto next_position = in.get<Position>();
    const uint32_t n_units = in.get_count(kUnitBytes);
    std::vector<Unit> units;
    units.reserve(n_units);
    for (uint32_t i = 0; i < n_units; ++i) units.push_back(read_unit(in));

    Cell end = 0;
    for (const Unit & unit : units) {
        for (const Cell cell : unit.cells) end = cell < UINT32_MAX && cell >= end ? cell + 1 : end;
    }
    const std::string what = violation(units, mrope, next_id, next_position, n_cells);
    if (!what.empty() && end > n_cells) {
        throw StateError{"it needs a cache of " + std::to_string(end) + " cells, this one has " + std::to_string(n_cells)};
    }
    if (!what.empty()) throw StateError{"its history is damaged (" + what + ")"};
    return History(Ledger(mrope, std::move(units), next_id, next_position), n_cells, settings, placement, head);
}

}  // namespace ot
