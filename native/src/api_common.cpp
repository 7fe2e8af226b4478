// See api_common.h.
#include "api_common.h"

#include <string_view>
#include <vector>

namespace ot::api {

namespace {

thread_local std::string last_error = "no error";

CostModel cost_from(const ot_cost_model & c, int32_t threads) {
    CostModel cost;
    cost.kernel = checked(c.kernel, Kernel::Span, "attention kernel");
    cost.threads = threads > 0 ? static_cast<uint32_t>(threads) : 1;
    cost.tile_us = c.tile_us;
    cost.empty_tile_us = c.empty_tile_us;
    cost.cell_us = c.cell_us;
    cost.run_us = c.run_us;
    cost.empty_cell_us = c.empty_cell_us;
    cost.slice_cell_us = c.slice_cell_us;
    cost.span_cell_us = c.span_cell_us;
    cost.key_row_us = c.key_row_us;
    cost.value_row_us = c.value_row_us;
    return cost;
}

// The policy or planner of that number.
template <typename Entry, typename Enum>
Enum known(const std::vector<Entry> & entries, Enum Entry::*of, int32_t value, const char * what) {
    for (const Entry & entry : entries) {
        if (static_cast<int32_t>(entry.*of) == value) return entry.*of;
    }
    throw Failure{OT_ERR_ARGUMENT, std::string("unknown ") + what + " " + std::to_string(value)};
}

template <typename Entry, typename Enum>
int32_t number_of(const std::vector<Entry> & entries, Enum Entry::*of, const char * name) {
    for (const Entry & entry : entries) {
        if (name && std::string_view(entry.name) == name) return static_cast<int32_t>(entry.*of);
    }
    return -1;
}

template <typename Entry, typename Enum>
const char * name_of(const std::vector<Entry> & entries, Enum Entry::*of, int32_t value) {
    for (const Entry & entry : entries) {
        if (static_cast<int32_t>(entry.*of) == value) return entry.name;
    }
    return nullptr;
}

void set(HistorySettings & settings, const ot_knob & knob) {
    const std::string_view name = knob.name ? knob.name : "";
    KnobFit fit = set_knob(settings.pick, name, knob.value);
    if (fit == KnobFit::Unknown) fit = set_knob(settings.page, name, knob.value);
    if (fit == KnobFit::Set) return;
    const std::string wrong = fit == KnobFit::Unknown ? "there is no setting " : "out of range: ";
    throw Failure{OT_ERR_ARGUMENT, wrong + std::string(name) + " = " + std::to_string(knob.value)};
}

KeepRule rule_of(const ot_session_params & p) {
    return [retain = p.retain, data = p.retain_data](const Ledger & ledger, const PickSettings & settings) {
        std::vector<uint8_t> keep(ledger.tokens());
        if (retain(data, settings.high_watermark, settings.low_watermark, keep.data(), keep.size()) != 0) throw PolicyError{"the policy gave up"};
        return std::vector<bool>(keep.begin(), keep.end());
    };
}

ot_layout_stats to_c(const LayoutStats & stats) {
    return {stats.useful_cells, stats.active_pages, stats.active_subblocks, stats.page_span, stats.physical_span, stats.holes, stats.largest_hole};
}

}  // namespace

int fail(int status, std::string what) {
    last_error = std::move(what);
    return status;
}

HistorySettings history_settings(const ot_session_params & p) {
    if (p.size != sizeof(ot_session_params)) throw Failure{OT_ERR_ARGUMENT, "ot_session_params has a different size: the caller was built against another header"};
    if (p.low_watermark == 0 || p.low_watermark >= p.high_watermark) throw Failure{OT_ERR_ARGUMENT, "the watermarks must satisfy 0 < low < high"};
    if (p.page_size == 0 || p.subblock_size == 0 || p.page_size % p.subblock_size != 0) {
        throw Failure{OT_ERR_ARGUMENT, "the subblock size must divide the page size"};
    }
    if (p.span_align == 0) throw Failure{OT_ERR_ARGUMENT, "the span's alignment must be at least one cell"};
    HistorySettings s;
    s.pick.policy = known(policies(), &PolicyEntry::policy, p.policy, "policy");
    s.pick.high_watermark = p.high_watermark;
    s.pick.low_watermark = p.low_watermark;
    if (p.retain) s.pick.rule = rule_of(p);
    s.pick.rule_reads_attention = p.retain_reads_attention != 0;
    s.page.planner = known(planners(), &PlannerEntry::planner, p.planner, "layout planner");
    for (size_t i = 0; i < p.n_knobs; ++i) set(s, p.knobs[i]);
    s.cost = cost_from(p.cost, p.threads);
    s.geometry = {p.page_size, p.subblock_size, p.span_align};
    s.compact_positions = p.positions == OT_POSITIONS_COMPACT;
    s.position_limit = static_cast<Position>(p.position_limit);
    return s;
}

ot_maintenance to_c(const Upkeep & upkeep) {
    const RetentionPlan & retention = upkeep.retention;
    const MigrationPlan & migration = upkeep.migration;
    ot_maintenance out{};
    out.retained = retention.triggered;
    out.before_tokens = retention.before_tokens;
    out.after_tokens = retention.after_tokens;
    out.full_units = retention.full_units;
    out.partial_units = retention.partial_units;
    out.dropped_units = retention.dropped_units;
    out.planned = retention.triggered;
    out.planner = static_cast<int32_t>(migration.planner);
    out.accepted = migration.accepted;
    out.reason = migration.reason;
    out.rows_moved = upkeep.rows_moved;
    out.rows_shifted = upkeep.rows_shifted;
    out.before = to_c(migration.before);
    out.after = to_c(migration.after);
    return out;
}

ot_snapshot snapshot(const History & history) {
    ot_snapshot out{};
    out.history_tokens = history.ledger().tokens();
    out.next_position = static_cast<uint32_t>(history.ledger().next_position());
    out.n_cells = history.layout().size();
    out.free_cells = history.free_cells();
    out.n_units = static_cast<uint32_t>(history.ledger().units().size());
    out.max_rotations = history.ledger().max_rotations();
    for (Cell cell = 0; cell < history.layout().size(); ++cell) {
        switch (history.layout().at(cell)) {
            case CellClass::Free: break;
            case CellClass::Must: ++out.must_cells; break;
            case CellClass::Selected: ++out.selected_cells; break;
            case CellClass::Recent: ++out.recent_cells; break;
            case CellClass::Recalled: ++out.recalled_cells; break;
        }
    }
    out.mrope = history.ledger().mrope();
    out.layout = to_c(history.layout().stats());
    return out;
}

size_t cells(const History & history, uint8_t * classes, size_t cap) {
    const Layout & layout = history.layout();
    return fill(classes, cap, [&](auto add) {
        for (Cell cell = 0; cell < layout.size(); ++cell) add(static_cast<uint8_t>(layout.at(cell)));
    });
}

size_t scores(const History & history, double * out, size_t cap) {
    return fill(out, cap, [&](auto add) {
        for (const Unit & unit : history.ledger().units()) {
            for (size_t i = 0; i < unit.cells.size(); ++i) add(unit.scores.empty() ? 0.0 : unit.scores[i]);
        }
    });
}

size_t units(const History & history, ot_unit_info * out, size_t cap) {
    return fill(out, cap, [&](auto add) {
        for (const Unit & unit : history.ledger().units()) {
            add(ot_unit_info{unit.id, static_cast<int32_t>(unit.kind), unit.partial, unit.recalled, unit.tokens(), static_cast<uint32_t>(unit.spans.size()), unit.start_s, unit.end_s});
        }
    });
}

size_t spans(const History & history, ot_span_info * out, size_t cap) {
    return fill(out, cap, [&](auto add) {
        for (const Unit & unit : history.ledger().units()) {
            for (const Span & span : unit.spans) {
                add(ot_span_info{static_cast<int32_t>(span.role), span.continues, span.length, span.first, span.width, span.rotations, span.base});
            }
        }
    });
}

size_t tokens(const History & history, ot_token_info * out, size_t cap) {
    return fill(out, cap, [&](auto add) {
        for (const Unit & unit : history.ledger().units()) {
            size_t token = 0;
            for (const Span & span : unit.spans) {
                for (uint32_t i = 0; i < span.length; ++i) {
                    const TokenPosition p = token_position(span, i, history.ledger().mrope());
                    add(ot_token_info{unit.cells[token++], p.t, p.y, p.x});
                }
            }
        }
    });
}

}  // namespace ot::api

int32_t ot_policy(const char * name) { return ot::api::number_of(ot::policies(), &ot::PolicyEntry::policy, name); }
int32_t ot_planner(const char * name) { return ot::api::number_of(ot::planners(), &ot::PlannerEntry::planner, name); }
const char * ot_policy_name(int32_t policy) { return ot::api::name_of(ot::policies(), &ot::PolicyEntry::policy, policy); }
const char * ot_planner_name(int32_t planner) { return ot::api::name_of(ot::planners(), &ot::PlannerEntry::planner, planner); }

const char * ot_last_error(void) { return ot::api::last_error.c_str(); }
