// What attention and moving cost, and how auto weighs the plans. docs/omnipage.md, "What attention costs" and "Planners".
#include "builders.h"
#include "check.h"

namespace ot {

namespace {

constexpr Geometry kPages{64, 32, 256};

// `used` cells of each page, from its beginning.
Layout pages_of(const std::vector<uint32_t> & used, CellClass cls = CellClass::Recent) {
    Layout layout(static_cast<uint32_t>(used.size()) * 64, kPages);
    for (uint32_t page = 0; page < used.size(); ++page) {
        for (Cell cell = page * 64; cell < page * 64 + used[page]; ++cell) layout.set(cell, cls);
    }
    return layout;
}

CostModel only(double CostModel::*coefficient) {
    CostModel cost;
    for (double CostModel::*c : {&CostModel::tile_us, &CostModel::empty_tile_us, &CostModel::cell_us, &CostModel::run_us, &CostModel::empty_cell_us,
                                 &CostModel::slice_cell_us, &CostModel::span_cell_us,
                                 &CostModel::key_row_us, &CostModel::value_row_us}) {
        cost.*c = 0;
    }
    cost.*coefficient = 1;
    return cost;
}

Forecast forecast_of(const Layout & layout, const CostModel & cost, uint32_t arriving, const Work & work) {
    return {cost, arriving, work, std::vector<bool>(layout.size())};
}

}  // namespace

TEST(large_batches_pay_for_active_tiles_whatever_the_span) {
    const CostModel cost = only(&CostModel::tile_us);
    for (const auto & pages : {std::vector<uint32_t>{64, 64, 0, 0}, {1, 0, 0, 1}, {0, 64, 64, 0}}) {
        CHECK_EQ(attention_us(cost, pages_of(pages), {10, 5, 5}), 20.0);
    }
}

TEST(tiles_are_the_backends_not_pages) {
    Layout layout(256, {128, 32, 256});
    layout.set(0, CellClass::Recent);
    layout.set(127, CellClass::Recent);
    CHECK_EQ(attention_us(only(&CostModel::tile_us), layout, {1, 0, 0}), 2.0);
}

TEST(large_batches_pay_a_little_for_empty_tiles_of_the_span) {
    const CostModel cost = only(&CostModel::empty_tile_us);
    CHECK_EQ(attention_us(cost, pages_of({64, 0, 0, 1}), {10, 5, 5}), 20.0);
    CHECK_EQ(attention_us(cost, pages_of({64, 0, 0, 0, 1}), {10, 5, 5}), 30.0);
    CHECK_EQ(attention_us(cost, pages_of({64, 64, 64, 64}), {10, 5, 5}), 0.0);
}

TEST(small_batches_and_untiled_types_pay_a_little_for_empty_cells_of_the_span) {
    CostModel cost = only(&CostModel::empty_cell_us);
    CHECK_EQ(attention_us(cost, pages_of({10, 0, 0, 20}), {7, 3, 9}), 3.0 * 226);
    cost.kernel = Kernel::Cells;
    CHECK_EQ(attention_us(cost, pages_of({10, 0, 0, 20}), {7, 3, 9}), 19.0 * 226);
}

TEST(small_batches_and_untiled_types_pay_for_used_cells) {
    CostModel cost = only(&CostModel::cell_us);
    CHECK_EQ(attention_us(cost, pages_of({10, 0, 0, 20}), {7, 3, 9}), 90.0);
    cost.kernel = Kernel::Cells;
    CHECK_EQ(attention_us(cost, pages_of({10, 0, 0, 20}), {7, 3, 9}), 570.0);
}

TEST(small_batches_and_untiled_types_pay_for_runs) {
    CostModel cost = only(&CostModel::run_us);
    CHECK_EQ(attention_us(cost, pages_of({64, 64, 0, 20}), {7, 3, 9}), 6.0);
    CHECK_EQ(attention_us(cost, pages_of({0, 10, 10, 20}), {7, 3, 9}), 9.0);
    cost.kernel = Kernel::Cells;
    CHECK_EQ(attention_us(cost, pages_of({10, 0, 0, 20}), {7, 3, 9}), 38.0);
    CHECK_EQ(attention_us(cost, pages_of({0, 0, 0, 0}), {7, 3, 9}), 0.0);
}

TEST(decoding_pays_for_the_busiest_slice) {
    CostModel cost = only(&CostModel::slice_cell_us);
    CHECK_EQ(attention_us(cost, pages_of({64, 64, 64, 64}), {0, 0, 1}), 128.0);
    CHECK_EQ(attention_us(cost, pages_of({64, 64, 0, 0}), {0, 0, 1}), 128.0);
    CHECK_EQ(attention_us(cost, pages_of({64, 0, 0, 64}), {0, 0, 1}), 64.0);
    // One far cell in a packed cache lengthens every slice.
    CHECK_EQ(attention_us(cost, pages_of({64, 64, 64, 64, 64, 0, 0, 0}), {0, 0, 1}), 256.0);
    cost.threads = 4;
    CHECK_EQ(attention_us(cost, pages_of({64, 64, 0, 0}), {0, 0, 1}), 64.0);
}

TEST(without_flash_attention_every_cell_of_the_span_costs) {
    CostModel cost = only(&CostModel::span_cell_us);
    cost.kernel = Kernel::Span;
    CHECK_EQ(attention_us(cost, pages_of({1, 0, 0, 0, 0, 0, 0, 0}), {1, 1, 1}), 3.0 * 256);
    CHECK_EQ(attention_us(cost, pages_of({1, 0, 0, 0, 1, 0, 0, 0}), {1, 1, 1}), 3.0 * 512);
}

TEST(a_shift_pays_for_the_keys_of_a_move) {
    CostModel cost;
    cost.key_row_us = 3;
    cost.value_row_us = 2;
    std::vector<bool> shifted(8);
    shifted[5] = true;
    CHECK_EQ(moving_us(cost, {{5, 0}, {6, 1}}, shifted), 2.0 + 5.0);
}

TEST(expected_work_is_mixed_as_the_whole_units_are) {
    Builder builder;
    builder.system(100).media(280, 17).question(18).response(80);
    const Work work = expected_work(builder.ledger, 400);  // 300 + 20 + 80 seen
    CHECK_EQ(work.large, 300.0);
    CHECK_EQ(work.small, 20.0);
    CHECK_EQ(work.decoded, 80.0);
    CHECK_EQ(expected_work(Builder().system(10).ledger, 400).large, 400.0);
}

TEST(auto_moves_nothing_where_nothing_is_won) {
    const Layout layout = pages_of({64, 64, 0, 0, 64, 64});
    CostModel cost = only(&CostModel::cell_us);
    cost.kernel = Kernel::Cells;
    cost.key_row_us = cost.value_row_us = 1;
    const MigrationPlan plan = plan_auto(layout, winning(1), forecast_of(layout, cost, 0, {0, 1000, 0}));
    CHECK(!plan.accepted);
    CHECK(plan.planner == Planner::Native);
    CHECK_EQ(std::string(plan.reason), "moving would cost more than it saves");
}

TEST(auto_takes_class_packing_for_tiles_and_packs_for_spans) {
    // Two sparse pages behind four full ones behind a hole: one page is won by 8 moves, the span by 208.
    const Layout layout = pages_of({0, 0, 0, 0, 64, 64, 64, 64, 8, 8}, CellClass::Recent);
    CostModel cost = only(&CostModel::tile_us);
    cost.tile_us = 30;
    cost.span_cell_us = 0.46;
    cost.key_row_us = cost.value_row_us = 1.1;
    MigrationPlan plan = plan_auto(layout, winning(1), forecast_of(layout, cost, 0, {300, 0, 0}));
    CHECK(plan.planner == Planner::ClassPacking);
    CHECK_EQ(plan.moves.size(), size_t{8});
    cost.kernel = Kernel::Span;
    plan = plan_auto(layout, winning(1), forecast_of(layout, cost, 0, {300, 0, 0}));
    CHECK(plan.planner == Planner::HoleFilling);
    CHECK_EQ(plan.moves.size(), size_t{208});
    CHECK_EQ(plan.after.page_span, 320u);
    CHECK_EQ(plan.after.physical_span, 512u);
}

TEST(auto_counts_what_arrives) {
    // What packing would win, the next 120 tokens fill anyway.
    const Layout layout = pages_of({64, 4, 4, 64});
    const CostModel cost;
    CHECK(plan_auto(layout, winning(1), forecast_of(layout, cost, 0, {1, 0, 0})).accepted);
    CostModel dear = cost;
    dear.value_row_us = 10;
    CHECK(!plan_auto(layout, winning(1), forecast_of(layout, dear, 120, {2, 0, 0})).accepted);
    CHECK(plan_auto(layout, winning(1), forecast_of(layout, dear, 0, {2, 0, 0})).accepted);
}

TEST(auto_is_never_dearer_than_any_plan_it_weighs) {
    for (uint32_t seed = 0; seed < 400 && !check::failed(); ++seed) {
        Random random(seed);
        Layout layout(random.between(1, 40) * 16, {16, 8, 32});
        const uint32_t fill = random.below(101);
        for (Cell cell = 0; cell < layout.size(); ++cell) {
            if (random.chance(fill)) layout.set(cell, cell < 8 ? CellClass::Must : random.chance(50) ? CellClass::Selected : CellClass::Recent);
        }
        CostModel cost;
        cost.kernel = static_cast<Kernel>(random.below(3));
        cost.value_row_us = random.below(50);
        Forecast forecast = forecast_of(layout, cost, 0, {double(random.below(50)), double(random.below(9)), double(random.below(9))});
        for (size_t cell = 0; cell < layout.size(); ++cell) forecast.shifted[cell] = random.chance(50);
        const PlannerSettings settings = winning(random.below(4));
        const auto total = [&](const MigrationPlan & plan) {
            return attention_us(cost, moved(layout, plan.moves), forecast.work) + moving_us(cost, plan.moves, forecast.shifted);
        };
        const MigrationPlan plan = plan_auto(layout, settings, forecast);
        CHECK_EQ(plan.accepted, !plan.moves.empty());
        std::vector<MigrationPlan> others{plan_native(layout), plan_class_packing(layout), plan_hole_filling(layout), plan_ordered_suffix(layout, settings)};
        if (others[2].after.page_span > plan_eager(layout).after.page_span) others.push_back(plan_eager(layout));
        for (const MigrationPlan & other : others) CHECK(total(plan) <= total(other) + 1e-6);
    }
}

}  // namespace ot
