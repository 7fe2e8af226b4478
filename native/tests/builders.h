// Small ledgers and layouts, written so that a test reads like the rule it checks.
#pragma once

#include "ledger/ledger.h"
#include "page/planner.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace ot {

inline Span run(Role role, uint32_t length, uint32_t width = 0) {
    Span span;
    span.role = role;
    span.length = length;
    span.width = width;
    return span;
}

// Fills a ledger; new tokens lie in the next cells.
class Builder {
public:
    explicit Builder(bool mrope = false) : ledger(mrope) {}

    Builder & add(UnitKind kind, std::vector<Span> spans) {
        std::vector<Cell> cells;
        for (const Span & span : spans) {
            for (uint32_t i = 0; i < span.length; ++i) cells.push_back(next_cell_++);
        }
        ledger.lay_out(spans);
        ledger.append(kind, std::move(spans), std::move(cells), 0, 1);
        return *this;
    }
    Builder & system(uint32_t n) { return add(UnitKind::System, {run(Role::System, n)}); }
    Builder & media(uint32_t slice, uint32_t audio) {
        return add(UnitKind::Media, {run(Role::Boundary, 1), run(Role::ImageSlice, slice), run(Role::Boundary, 1),
                                     run(Role::Audio, audio), run(Role::Boundary, 1)});
    }
    Builder & question(uint32_t n) { return add(UnitKind::Question, {run(Role::Boundary, 2), run(Role::Text, n)}); }
    Builder & response(uint32_t n) { return add(UnitKind::Response, {run(Role::Response, n)}); }

    Ledger ledger;

private:
    Cell next_cell_ = 0;
};

// "S" must (system), "s" selected, "r" recent, "." free.
inline Layout layout_of(const std::string & cells, Geometry geometry) {
    Layout layout(static_cast<uint32_t>(cells.size()), geometry);
    for (Cell cell = 0; cell < layout.size(); ++cell) {
        const char c = cells[cell];
        layout.set(cell, c == 'S' ? CellClass::Must : c == 's' ? CellClass::Selected : c == 'r' ? CellClass::Recent
                                                                                                  : CellClass::Free);
    }
    return layout;
}

inline std::string text_of(const Layout & layout) {
    std::string text;
    for (Cell cell = 0; cell < layout.size(); ++cell) text += ".SsrC"[static_cast<size_t>(layout.at(cell))];
    return text;
}

// So many pages have to be won.
inline PlannerSettings winning(uint32_t min_pages) {
    PlannerSettings settings;
    settings.min_pages = min_pages;
    return settings;
}

// The same on every machine.
class Random {
public:
    explicit Random(uint32_t seed) : engine_(seed) {}
    uint32_t below(uint32_t n) { return static_cast<uint32_t>(engine_() % n); }
    uint32_t between(uint32_t low, uint32_t high) { return low + below(high - low + 1); }
    bool chance(uint32_t percent) { return below(100) < percent; }

private:
    std::mt19937 engine_;
};

}  // namespace ot
