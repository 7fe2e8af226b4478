// What moves. docs/omnipage.md, "Planners"; section 6.2 of the paper.
#include "builders.h"
#include "check.h"

#include <set>

namespace ot {

namespace {

constexpr Geometry kSmall{4, 2, 8};
constexpr Geometry kNoRounding{4, 2, 1};  // n_kv = highest used cell + 1

std::string moves_of(const MigrationPlan & plan) {
    std::string text;
    for (const Move & m : plan.moves) text += std::to_string(m.src) + ">" + std::to_string(m.dst) + " ";
    return text;
}

Layout random_layout(Random & random) {
    Geometry geometry = kSmall;
    geometry.span_align = 1u << random.below(5);
    Layout layout(random.between(1, 60), geometry);
    const uint32_t fill = random.below(101);
    const uint32_t must = random.below(8);
    const uint32_t selected = random.below(101);
    for (Cell cell = 0; cell < layout.size(); ++cell) {
        if (cell < must || random.chance(1)) layout.set(cell, CellClass::Must);
        else if (random.chance(fill)) layout.set(cell, random.chance(selected) ? CellClass::Selected : CellClass::Recent);
    }
    return layout;
}

std::vector<Cell> used_cells(const Layout & layout) {
    std::vector<Cell> used;
    for (Cell cell = 0; cell < layout.size(); ++cell) {
        if (layout.at(cell) != CellClass::Free) used.push_back(cell);
    }
    return used;
}

// Class packing as it is written down. `from` says where each entry lay at first.
struct NaivePacking {
    Layout now;
    std::vector<Cell> from;
    uint32_t page_size;

    explicit NaivePacking(const Layout & layout) : now(layout), from(layout.size()), page_size(layout.geometry().page_size) {
        for (Cell c = 0; c < layout.size(); ++c) from[c] = c;
    }
    uint32_t count(uint32_t page, bool (*wanted)(CellClass)) const {
        uint32_t n = 0;
        for (Cell c = page * page_size; c < std::min((page + 1) * page_size, now.size()); ++c) n += wanted(now.at(c));
        return n;
    }
    void move(Cell src, Cell dst) {
        now.set(dst, now.at(src));
        now.set(src, CellClass::Free);
        std::swap(from[src], from[dst]);
    }
    bool takes_selected(uint32_t page) const {
        return count(page, [](CellClass cls) { return cls == CellClass::Must || cls == CellClass::Recent; }) == 0;
    }
    uint32_t used(uint32_t page) const {
        return count(page, [](CellClass cls) { return cls != CellClass::Free; });
    }
    bool open(uint32_t page) const {
        const uint32_t free = count(page, [](CellClass cls) { return cls == CellClass::Free; });
        return free > 0 && used(page) > 0 && count(page, [](CellClass cls) { return cls == CellClass::Must; }) == 0;
    }

    // Step 1: each candidate looks through all lower cells.
    void pack_selected(const Layout & layout) {
        for (Cell src = 0; src < layout.size(); ++src) {
            if (layout.at(src) != CellClass::Selected || layout.page_class(src / page_size) == PageClass::Selected) continue;
            for (Cell dst = 0; dst < src; ++dst) {
                if (now.at(dst) != CellClass::Free || !takes_selected(dst / page_size)) continue;
                move(src, dst);
                break;
            }
        }
    }
    // Step 2: pages by what step 1 left in them, the sparsest first, of equal ones the last.
    void empty_sparse_pages() {
        std::vector<std::pair<uint32_t, uint32_t>> order;
        for (uint32_t page = now.n_pages(); page-- > 0;) order.push_back({used(page), page});
        std::stable_sort(order.begin(), order.end(), [](const auto & a, const auto & b) { return a.first < b.first; });
        for (const auto & entry : order) {
            const uint32_t page = entry.second;
            if (!open(page)) continue;
            std::vector<Cell> holes;
            for (Cell c = 0; c < page * page_size; ++c) {
                if (now.at(c) == CellClass::Free && open(c / page_size)) holes.push_back(c);
            }
            if (holes.size() < used(page)) continue;
            auto hole = holes.begin();
            for (Cell c = page * page_size; c < std::min((page + 1) * page_size, now.size()); ++c) {
                if (now.at(c) != CellClass::Free) move(c, *hole++);
            }
        }
    }
    std::vector<Move> moves() const {
        std::vector<Move> all;
        for (Cell c = 0; c < now.size(); ++c) {
            if (now.at(c) != CellClass::Free && from[c] != c) all.push_back({from[c], c});
        }
        std::sort(all.begin(), all.end(), [](const Move & a, const Move & b) { return a.src < b.src; });
        return all;
    }
};

std::vector<Move> naive_class_packing(const Layout & layout) {
    NaivePacking packing(layout);
    packing.pack_selected(layout);
    packing.empty_sparse_pages();
    return packing.moves();
}

// Pages that the entries behind the must-keep pages need at least.
uint32_t fewest_pages(const Layout & layout) {
    uint32_t must = 0, others = 0;
    for (uint32_t page = 0; page < layout.n_pages(); ++page) {
        const bool is_must = layout.page_class(page) == PageClass::Must;
        must += is_must;
        for (Cell c = page * layout.geometry().page_size; c < std::min((page + 1) * layout.geometry().page_size, layout.size()); ++c) {
            others += !is_must && layout.at(c) != CellClass::Free;
        }
    }
    return must + (others + layout.geometry().page_size - 1) / layout.geometry().page_size;
}

bool fewer_active(const LayoutStats & after, const LayoutStats & before) {
    return after.active_pages < before.active_pages || after.active_subblocks < before.active_subblocks;
}

// Every k is tried, the whole layout simulated.
std::vector<Move> naive_ordered_suffix(const Layout & layout, uint32_t min_pages) {
    const std::vector<Cell> used = used_cells(layout);
    const LayoutStats before = layout.stats();
    std::vector<Move> best;
    uint32_t shortest = UINT32_MAX;  // page span of the best that packing can do
    for (size_t k = 0; k < used.size(); ++k) {
        std::vector<Move> moves;
        bool must = false;
        Cell dst = k == 0 ? 0 : used[k - 1] + 1;
        for (size_t i = k; i < used.size(); ++i, ++dst) {
            must = must || layout.at(used[i]) == CellClass::Must;
            moves.push_back({used[i], dst});
        }
        const LayoutStats after = moved(layout, moves).stats();
        if (!must) shortest = std::min(shortest, after.page_span);
        const bool near = after.page_span < shortest + std::max(min_pages, 1u) * layout.geometry().page_size;
        const bool wins = near && after.page_span + min_pages * layout.geometry().page_size <= before.page_span &&
                          after.physical_span < before.physical_span;
        if (wins && !must) best = moves;
    }
    return best;
}

bool same(const std::vector<Move> & a, const std::vector<Move> & b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const Move & x, const Move & y) {
               return x.src == y.src && x.dst == y.dst;
           });
}

bool same(const LayoutStats & a, const LayoutStats & b) {
    return a.useful_cells == b.useful_cells && a.active_pages == b.active_pages &&
           a.active_subblocks == b.active_subblocks && a.page_span == b.page_span &&
           a.physical_span == b.physical_span && a.holes == b.holes && a.largest_hole == b.largest_hole;
}

// What holds for every planner (docs/omnipage.md, "Invariants").
void check_plan(const Layout & layout, const MigrationPlan & plan) {
    CHECK(std::string(plan.reason) != "");
    CHECK_EQ(plan.accepted, !plan.moves.empty());
    CHECK(same(plan.before, layout.stats()));
    CHECK(same(plan.after, moved(layout, plan.moves).stats()));
    CHECK_EQ(plan.after.useful_cells, plan.before.useful_cells);
    CHECK(plan.moves.size() <= layout.used());
    std::set<Cell> sources, destinations;
    for (const Move & m : plan.moves) {
        CHECK(m.dst < m.src);
        CHECK(layout.at(m.src) != CellClass::Free);
        CHECK(sources.insert(m.src).second);
        CHECK(destinations.insert(m.dst).second);
        if (plan.planner != Planner::Eager) CHECK(layout.at(m.src) != CellClass::Must);
    }
    for (const Cell dst : destinations) CHECK(layout.at(dst) == CellClass::Free || sources.count(dst));
}

}  // namespace

TEST(placements_of_the_planners) {
    CHECK(placement_for(Planner::Native) == Placement::Native);
    CHECK(placement_for(Planner::ClassPacking) == Placement::Class);
    for (const Planner planner : {Planner::Eager, Planner::OrderedSuffix, Planner::HoleFilling, Planner::Auto}) CHECK(placement_for(planner) == Placement::Span);
}

TEST(native_never_moves) {
    const Layout layout = layout_of("S..r...s", kSmall);
    check_plan(layout, plan_native(layout));
    CHECK(!plan_native(layout).accepted);
}

TEST(eager_packs_everything_in_order) {
    CHECK_EQ(moves_of(plan_eager(layout_of("SS.r..s.", kSmall))), "3>2 6>3 ");
    CHECK_EQ(moves_of(plan_eager(layout_of(".S.r", kSmall))), "1>0 3>1 ");  // must-keep cells too
    CHECK_EQ(moves_of(plan_eager(layout_of("SSrs....", kSmall))), "");
    CHECK_EQ(moves_of(plan_eager(layout_of("........", kSmall))), "");
}

TEST(class_packing_moves_selected_cells_into_earlier_holes) {
    struct Case { const char * cells; const char * moves; };
    for (const Case & c : std::vector<Case>{
             {"S...s...s...s...", "8>5 12>6 "},    // not beside the system unit; two pages fall empty
             {"r...s...s...", "4>1 8>2 "},         // nor beside recent context, unless that empties its page
             {"....s...s...", "4>0 8>1 "},         // an empty page takes them, their old cells are free at once
             {"ssss..s.s...", "6>4 8>5 "},         // a Selected page stays
             {"rrrrr.s.s...", "8>5 "},             // 6 stays: its page takes others, it has none below to leave for
             {"ss..ss......", "4>2 5>3 "},         // one page less
             {"s.s.", "2>1 "},                     // a subblock less is enough
             {"s.s.r...", "2>1 4>2 "},             // but a page is better
             {"ss.srs.s", ""},                     // 5>2 would leave as many pages and subblocks
             {"r..r", ""},                         // one page stays one page
             {"r...r...rr..", "4>1 8>2 9>3 "},     // whole units leave sparse pages, too
             {"rr..rrr.r...", "8>2 "},             // the sparsest page is emptied, not the last hole closed
             {"S...r...", ""},                     // but not into a must-keep page
         }) {
        const Layout layout = layout_of(c.cells, kSmall);
        CHECK_EQ(moves_of(plan_class_packing(layout)), c.moves);
    }
    CHECK_EQ(std::string(plan_class_packing(layout_of("....s...s...", kSmall)).reason), "fewer active pages");
    CHECK_EQ(std::string(plan_class_packing(layout_of("s.s.", kSmall)).reason), "fewer active subblocks");
}

TEST(ordered_suffix_moves_the_shortest_suffix_that_wins_enough) {
    struct Case { const char * cells; Geometry geometry; uint32_t min_pages; const char * moves; };
    for (const Case & c : std::vector<Case>{
             {"S...r...r...r...", kNoRounding, 1, "4>1 8>2 12>3 "},  // one page more would be within reach
             {"S...r...r...r...", kNoRounding, 2, "8>5 12>6 "},      // within less than two pages of the shortest
             {"S...r...r...r...", kNoRounding, 3, "4>1 8>2 12>3 "},
             {"S...r...r...r...", kNoRounding, 4, ""},      // more than there is to win
             {"S...r...r...S...", kNoRounding, 1, ""},      // must-keep cells don't move
             {"S...S...r...r...", kNoRounding, 2, "8>5 12>6 "},
             {"S...S...r...r...", kNoRounding, 3, ""},
             {"S...r.....r.....", kNoRounding, 2, "4>1 10>2 "},  // 10>5 would win one page alone
             {"rrrrr...r.......", {4, 2, 16}, 1, ""},     // n_kv stays 16
             {"....r...", kNoRounding, 1, "4>0 "},          // from the very beginning
             {"........", kNoRounding, 0, ""},
             {"rrr.r...", kNoRounding, 0, "4>3 "},
             {"rrrr....", kNoRounding, 0, ""},
         }) {
        const Layout layout = layout_of(c.cells, c.geometry);
        CHECK_EQ(moves_of(plan_ordered_suffix(layout, winning(c.min_pages))), c.moves);
    }
}

TEST(hole_filling_moves_what_lies_behind_the_shortest_span) {
    struct Case { const char * cells; const char * moves; };
    for (const Case & c : std::vector<Case>{
             {"S...r...r...r...", "4>1 8>2 12>3 "},
             {"Sr..rr..rr......", "8>2 9>3 "},  // the page before the last one has room enough as it is
             {"....rrrr", "4>0 5>1 6>2 7>3 "},
             {"S...S...r...r...", "8>1 12>2 "},  // must-keep cells stay in the span
             {"S...r...r...S...", ""},
             {"rr.r....", ""},                   // within a page nothing is won
             {"........", ""},
         }) {
        CHECK_EQ(moves_of(plan_hole_filling(layout_of(c.cells, kNoRounding))), c.moves);
    }
}

TEST(random_plans) {
    uint32_t packed = 0;
    uint32_t filled = 0;
    uint32_t suffixes = 0;
    for (uint32_t seed = 0; seed < 4000 && !check::failed(); ++seed) {
        Random random(seed);
        const Layout layout = random_layout(random);

        const MigrationPlan eager = plan_eager(layout);
        check_plan(layout, eager);
        CHECK_EQ(eager.after.holes, 0u);

        const MigrationPlan packing = plan_class_packing(layout);
        check_plan(layout, packing);
        const std::vector<Move> naive = naive_class_packing(layout);
        const bool wins = fewer_active(moved(layout, naive).stats(), layout.stats());
        CHECK_EQ(packing.accepted, wins);
        if (wins) CHECK(same(packing.moves, naive));
        if (wins && layout.size() % layout.geometry().page_size == 0) CHECK_EQ(packing.after.active_pages, fewest_pages(moved(layout, naive)));
        if (eager.accepted) CHECK(packing.moves.size() <= eager.moves.size());
        packed += wins;

        const uint32_t min_pages = random.below(6);
        const MigrationPlan suffix = plan_ordered_suffix(layout, winning(min_pages));
        check_plan(layout, suffix);
        CHECK(same(suffix.moves, naive_ordered_suffix(layout, min_pages)));
        suffixes += suffix.accepted;

        const MigrationPlan filling = plan_hole_filling(layout);
        check_plan(layout, filling);
        CHECK(filling.after.page_span <= suffix.after.page_span);
        CHECK(filling.after.active_pages <= filling.before.active_pages);
        if (suffix.accepted && filling.after.page_span == suffix.after.page_span) CHECK(filling.moves.size() <= suffix.moves.size());
        if (filling.accepted && filling.after.page_span == eager.after.page_span) CHECK(filling.moves.size() <= eager.moves.size());
        filled += filling.accepted;
    }
    CHECK(filled > 300);
    CHECK(packed > 300);
    CHECK(suffixes > 300);
}

}  // namespace ot
