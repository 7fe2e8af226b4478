// The C API of a history without a model. What a session does around a history (room, answers) stays there.
#include "api_common.h"
#include "session/history_state.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

using namespace ot;
using namespace ot::api;

struct ot_history {
    History history;
    Upkeep last;  // of the newest maintenance
};

namespace {

std::vector<Span> spans_of(const ot_part * parts, size_t n) {
    std::vector<Span> spans;
    for (size_t i = 0; i < n; ++i) {
        const Role role = checked(parts[i].role, Role::System, "role");
        if (parts[i].length == 0) throw Failure{OT_ERR_ARGUMENT, "a span is empty"};
        if (parts[i].width > 0 && !is_image(role)) throw Failure{OT_ERR_ARGUMENT, "only an image can have a width"};
        Span span;
        span.role = role;
        span.length = parts[i].length;
        span.width = parts[i].width;
        spans.push_back(span);
    }
    if (spans.empty()) throw Failure{OT_ERR_ARGUMENT, "the unit is empty"};
    return spans;
}

std::vector<Cell> place(History & history, uint32_t n) {
    std::vector<Cell> cells = history.place(n);
    if (cells.size() < n) {
        throw Failure{OT_ERR_NO_ROOM, std::to_string(n) + " tokens were to be added, but only " + std::to_string(history.free_cells()) + " of " +
                                          std::to_string(history.layout().size()) + " cells are free"};
    }
    return cells;
}

}  // namespace

int ot_history_create(const ot_session_params * params, uint32_t n_cells, int mrope, ot_history ** out) {
    return guarded([&] {
        if (!params || !out) throw Failure{OT_ERR_ARGUMENT, "a pointer is missing"};
        *out = new ot_history{History(mrope != 0, n_cells, history_settings(*params)), {}};
    });
}

void ot_history_free(ot_history * h) { delete h; }

int ot_history_append(ot_history * h, int kind, const ot_part * parts, size_t n, double start_s, double end_s, uint64_t * unit) {
    return guarded([&] {
        const UnitKind unit_kind = checked(kind, UnitKind::Response, "unit kind");
        std::vector<Span> spans = spans_of(parts, n);
        uint64_t tokens = 0;
        for (const Span & span : spans) tokens += span.length;
        if (tokens > h->history.layout().size()) throw Failure{OT_ERR_NO_ROOM, std::to_string(tokens) + " tokens are more than there are cells"};
        std::vector<Cell> cells = place(h->history, static_cast<uint32_t>(tokens));
        h->history.lay_out(spans);
        const uint64_t id = h->history.append(unit_kind, std::move(spans), std::move(cells), start_s, end_s);
        if (unit) *unit = id;
    });
}

int ot_history_grow(ot_history * h, int role, uint32_t n) {
    return guarded([&] {
        const Role as = checked(role, Role::System, "role");
        const auto & units = h->history.ledger().units();
        if (units.empty() || is_image(as)) throw Failure{OT_ERR_ARGUMENT, "there is no unit to extend, or the role is an image"};
        if (h->history.free_cells() < n) place(h->history, n);  // fails before anything is changed
        for (uint32_t i = 0; i < n; ++i) {
            const Cell cell = place(h->history, 1).front();
            if (units.back().spans.back().role == as) {
                h->history.extend_last(cell);
            } else {
                h->history.add_span(as, {cell});
            }
        }
    });
}

int ot_history_attend(ot_history * h, const double * scores, size_t n) {
    return guarded([&] {
        const Ledger & ledger = h->history.ledger();
        const bool sound = std::all_of(scores, scores + n, [](double score) { return std::isfinite(score) && score >= 0; });
        if (n != ledger.tokens() || !sound) throw Failure{OT_ERR_ARGUMENT, "attention needs one number per token, 0 or above"};
        std::vector<double> by_cell(h->history.layout().size(), 0.0);
        for (const Unit & unit : ledger.units()) {
            for (const Cell cell : unit.cells) by_cell[cell] = *scores++;
        }
        h->history.attend(by_cell);
    });
}

int ot_history_maintain(ot_history * h, uint32_t limit, ot_maintenance * out) {
    return guarded([&] {
        const auto start = std::chrono::steady_clock::now();
        h->last = h->history.maintain(limit);
        const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
        *out = to_c(h->last);
        out->plan_ms = elapsed.count();
    });
}

size_t ot_history_rows(const ot_history * h, ot_row * out, size_t cap) {
    return fill(out, cap, [&](auto add) {
        for (const Row & row : h->last.rows) add(row);
    });
}

size_t ot_history_freed(const ot_history * h, uint32_t * cells, size_t cap) {
    return fill(cells, cap, [&](auto add) {
        for (const Cell cell : h->last.freed) add(cell);
    });
}

int ot_history_save(const ot_history * h, void * out, size_t cap, size_t * size) {
    return guarded([&] { write_state(out, cap, size, [&](ByteWriter & writer) { write_history(h->history, writer); }); });
}

static int restore(ot_history * h, const void * data, size_t size, bool rows_follow) {
    return guarded([&] {
        ByteReader reader{static_cast<const uint8_t *>(data), size};
        History & history = h->history;
        History restored = read_history(reader, history.ledger().mrope(), history.layout().size(), history.settings());
        if (reader.left() != 0 && !rows_follow) throw StateError{"it is longer than it should be"};
        history = std::move(restored);
        h->last = {};
    });
}

int ot_history_restore(ot_history * h, const void * data, size_t size) { return restore(h, data, size, false); }
int ot_history_restore_session(ot_history * h, const void * data, size_t size) { return restore(h, data, size, true); }

int ot_history_snapshot(const ot_history * h, ot_snapshot * out) {
    return guarded([&] { *out = snapshot(h->history); });
}

size_t ot_history_cells(const ot_history * h, uint8_t * classes, size_t cap) { return cells(h->history, classes, cap); }
size_t ot_history_scores(const ot_history * h, double * out, size_t cap) { return scores(h->history, out, cap); }
size_t ot_history_units(const ot_history * h, ot_unit_info * out, size_t cap) { return units(h->history, out, cap); }
size_t ot_history_spans(const ot_history * h, ot_span_info * out, size_t cap) { return spans(h->history, out, cap); }
size_t ot_history_tokens(const ot_history * h, ot_token_info * out, size_t cap) { return tokens(h->history, out, cap); }
