// SPDX-License-Identifier: Apache-2.0
#include "placement/cost_model.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "placement/build_plan.h"
#include "placement/testing/random_problem.h"

namespace recmill::placement {
namespace {

using testing::counts_of;
using testing::zipf_problem;

/// Three tables on two devices with room for seven rows each, after figure 2 of the paper, with
/// numbers of our own: counts are lookups a sample, so that a batch of one sample has as many.
Problem figure_2() {
  Problem problem;
  const std::vector<std::vector<int64_t>> counts{{9, 3, 1, 1}, {8, 2, 1}, {4, 2, 2, 1, 1}};
  for (size_t t = 0; t < counts.size(); ++t) {
    PlacedTable table;
    table.spec.name = "t" + std::to_string(t);
    table.spec.rows = static_cast<int64_t>(counts[t].size());
    table.spec.dim = 1;
    table.row_bytes = 4;
    problem.tables.push_back(table);
    problem.counts.tables.push_back(counts_of(table.spec.name, counts[t], 1, 1));
  }
  problem.counts.samples = 1;
  problem.samples = 1;
  problem.training = false;
  problem.dedup_fetch = false;
  problem.cluster = equal_devices(2, 7 * 4, 0.5);
  return problem;
}

/// [table][row]: the device, or -1 for a copy on both.
PlacementPlan plan_of(const Problem& problem, const std::vector<std::vector<int>>& devices) {
  PlacementPlan plan = blank_plan(problem, "test");
  for (size_t t = 0; t < devices.size(); ++t)
    for (size_t row = 0; row < devices[t].size(); ++row) {
      const int device = devices[t][row];
      const FetchPath path = device < 0 ? FetchPath::everywhere(0, 2) : FetchPath::at(device, 2);
      plan.tables[t].runs.push_back({static_cast<int64_t>(row) + 1, plan.path(path)});
    }
  return plan;
}

struct Expected {
  std::vector<std::vector<int>> devices;
  std::array<double, 2> rows, looked_up;  // on each device
  double fetched_by_0, fetched_by_1;      // rows
};

TEST(CostModel, prices_the_plans_of_figure_2) {
  const Problem problem = figure_2();
  const std::array<Expected, 4> plans{{
      // Tables t0 and t1 on device 0, t2 on device 1.
      {{{0, 0, 0, 0}, {0, 0, 0}, {1, 1, 1, 1, 1}}, {7, 5}, {50, 20}, 10, 25},
      // Rows in two ranges of each table.
      {{{0, 0, 1, 1}, {0, 0, 1}, {0, 0, 0, 1, 1}}, {7, 5}, {60, 10}, 5, 30},
      // Row by row.
      {{{0, 1, 1, 1}, {1, 0, 0}, {0, 1, 0, 1, 1}}, {5, 7}, {36, 34}, 17, 18},
      // The two hottest rows on both devices.
      {{{-1, 0, 0, 0}, {-1, 1, 1}, {1, 0, 0, 1, 1}}, {7, 7}, {35, 35}, 9, 9},
  }};
  for (const Expected& expected : plans) {
    const Rating rating = rate(problem, plan_of(problem, expected.devices));
    for (int d = 0; d < 2; ++d) {
      EXPECT_EQ(rating.devices[d].memory, 4 * expected.rows[d]);
      EXPECT_EQ(rating.devices[d].looked_up, 4 * expected.looked_up[d]);
      EXPECT_EQ(rating.devices[d].lookup_seconds, 2 * expected.looked_up[d]);
    }
    EXPECT_EQ(rating.fetched[0 * 2 + 1], 4 * expected.fetched_by_0);
    EXPECT_EQ(rating.fetched[1 * 2 + 0], 4 * expected.fetched_by_1);
  }
  const Rating copied = rate(problem, plan_of(problem, plans[3].devices));
  EXPECT_EQ(copied.copied_rows, 2);
  EXPECT_EQ(copied.extra_copies, 2);
  EXPECT_EQ(copied.extra_bytes, 8);
  EXPECT_EQ(copied.pair_bytes.degree(), 1);
}

/// Equations 1 to 3 row by row.
void expect_equations(const Problem& problem, const PlacementPlan& plan) {
  const int devices = problem.devices();
  std::vector<double> memory(devices), looked_up(devices), fetched(devices * devices);
  for (size_t t = 0; t < problem.tables.size(); ++t) {
    const TableCounts& counts = problem.counts.tables[t];
    PathCursor cursor(plan.tables[t]);
    size_t hot = 0;
    const double bytes = static_cast<double>(problem.tables[t].spec.dim) * 4;
    const double lookups = static_cast<double>(counts.lookups * problem.samples) /
                           static_cast<double>(problem.counts.samples);
    for (int64_t row = 0; row < counts.rows; ++row) {
      const bool is_hot = hot < counts.hot_rows.size() && counts.hot_rows[hot] == row;
      const double p = is_hot ? static_cast<double>(counts.hot_counts[hot++]) /
                                    static_cast<double>(counts.lookups)
                              : 0.0;
      const double use = problem.dedup_fetch ? 1 - std::pow(1 - p, lookups) : p * lookups;
      const FetchPath& path = plan.paths[cursor.at(row)];
      for (int i = 0; i < devices; ++i) {
        const int j = path.from[i];
        if (i == j) memory[j] += static_cast<double>(problem.tables[t].row_bytes);
        looked_up[j] += use * bytes;
        fetched[i * devices + j] += use * bytes;
      }
    }
  }
  const Rating rating = rate(problem, plan);
  for (int i = 0; i < devices; ++i) {
    EXPECT_NEAR(rating.devices[i].memory, memory[i], 1e-9 * memory[i]);
    EXPECT_NEAR(rating.devices[i].looked_up, looked_up[i], 1e-6 * looked_up[i] + 1e-6);
    for (int j = 0; j < devices; ++j) {
      if (i == j) continue;
      EXPECT_NEAR(rating.fetched[i * devices + j], fetched[i * devices + j],
                  1e-6 * fetched[i * devices + j] + 1e-6);
    }
  }
}

TEST(CostModel, sums_what_equations_1_to_3_say_of_each_row) {
  for (const uint64_t seed : {1, 2, 3, 4}) {
    Problem problem = zipf_problem(std::array<int64_t, 3>{200, 7, 61}, 8, 1.1, 3, 5000, seed);
    for (TableCounts& counts : problem.counts.tables) {
      // Every row that is looked up is hot: nothing is averaged.
      std::vector<int64_t> of(counts.rows);
      for (size_t i = 0; i < counts.hot_rows.size(); ++i)
        of[counts.hot_rows[i]] = counts.hot_counts[i];
      counts = counts_of(counts.table, of, 1, 16);
    }
    problem.samples = 64;
    std::mt19937_64 random(seed);
    PlacementPlan plan = blank_plan(problem, "random");
    for (int d = 0; d < 3; ++d) plan.path(FetchPath::at(d, 3));
    plan.path(FetchPath::everywhere(2, 3));
    plan.path({0, {0, 1, 1}});
    for (TablePlacement& table : plan.tables) {
      for (int64_t end = 0; end < table.rows;) {
        end = std::min<int64_t>(end + 1 + static_cast<int64_t>(random() % 20), table.rows);
        table.runs.push_back({end, static_cast<int>(random() % 5)});
      }
      for (int64_t row = 0; row < table.rows; ++row) {
        if (random() % 4 != 0) continue;
        table.listed_rows.push_back(row);
        table.listed_paths.push_back(static_cast<int32_t>(random() % 5));
      }
    }
    for (const bool dedup : {false, true}) {
      problem.dedup_fetch = dedup;
      expect_equations(problem, plan);
    }
  }
}

TEST(CostModel, a_tail_by_ranges_adds_up_to_the_rows_it_stands_for) {
  Problem problem = zipf_problem(std::array<int64_t, 2>{3000, 500}, 16, 1.1, 4, 20'000, 5);
  problem.dedup_fetch = false;
  PlacementPlan plan = blank_plan(problem, "ranges");
  for (TablePlacement& table : plan.tables)
    for (int d = 0; d < 4; ++d)
      table.runs.push_back({(d + 1) * table.rows / 4, plan.path(FetchPath::at(d, 4))});
  const Rating rating = rate(problem, plan);
  double looked_up = 0, memory = 0;
  for (const DeviceRating& device : rating.devices) {
    looked_up += device.looked_up;
    memory += device.memory;
  }
  double lookups = 0;
  for (const TableCounts& counts : problem.counts.tables)
    lookups += static_cast<double>(counts.lookups * problem.samples) / 20'000;
  EXPECT_NEAR(looked_up, lookups * 4 * 16 * 4, 1e-6 * looked_up);
  EXPECT_EQ(memory, static_cast<double>(problem.total_bytes()));
}

TEST(CostModel, columns_cost_what_their_share_of_a_row_costs) {
  Problem problem = zipf_problem(std::array<int64_t, 1>{1000}, 48, 1.1, 2, 10'000, 5);
  PlacementPlan whole = blank_plan(problem, "whole"), columns = blank_plan(problem, "columns");
  whole.tables[0].runs = {{1000, whole.path(FetchPath::at(0, 2))}};
  columns.tables[0].column_devices = {0, 1};
  const Rating a = rate(problem, whole), b = rate(problem, columns);
  EXPECT_NEAR(b.devices[0].memory, a.devices[0].memory / 3, 1e-6);
  EXPECT_NEAR(b.devices[1].memory, a.devices[0].memory * 2 / 3, 1e-6);
  EXPECT_NEAR(b.fetched[0 * 2 + 1], a.fetched[1 * 2 + 0] * 2 / 3, 1e-6);
  EXPECT_NEAR(b.fetched[1 * 2 + 0], a.fetched[1 * 2 + 0] / 3, 1e-6);
}

TEST(CostModel, gradients_of_columns_go_with_their_rows_ids_and_squares_from_piece_to_piece) {
  Problem problem = zipf_problem(std::array<int64_t, 1>{1000}, 48, 1.1, 3, 10'000, 5);
  problem.tables[0].spec.optimizer.kind = OptimizerKind::rowwise_adagrad;
  PlacementPlan plan = blank_plan(problem, "columns");
  plan.tables[0].column_devices = {2, 0, 1};
  const RowUses uses(problem.counts.tables[0], problem.counts.samples, problem.samples, 3);
  const RowUse use = use_of_all(problem.counts.tables[0], uses);
  const DeviceCosts costs = costs_of(problem, plan);
  for (const auto& [to, from] : {std::pair{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}})
    EXPECT_NEAR(costs.moved(DeviceCosts::sum, to, from), use.distinct * (16 * 4 + 8), 1e-6);
  const auto squares = [&](int to, int from) { return costs.moved_in_rounds(to, from); };
  EXPECT_NEAR(squares(0, 2), use.touched * 64, 1e-6);
  EXPECT_NEAR(squares(1, 0), use.touched * 64, 1e-6);
  EXPECT_NEAR(squares(2, 1), use.touched * 4, 1e-6);
  EXPECT_NEAR(squares(0, 1), use.touched * 4, 1e-6);
  EXPECT_NEAR(costs.rounds_seconds(), use.touched * (64 + 64 + 2 * 4), 1e-6);
  problem.tables[0].spec.optimizer.kind = OptimizerKind::sgd;
  EXPECT_EQ(costs_of(problem, plan).moved_in_rounds(0, 2), 0);
  EXPECT_EQ(costs_of(problem, plan).rounds_seconds(), 0);
}

TEST(CostModel, a_round_takes_as_long_as_its_slowest_device) {
  Problem problem = zipf_problem(std::array<int64_t, 2>{3000, 3000}, 32, 1.1, 2, 10'000, 5);
  for (PlacedTable& table : problem.tables)
    table.spec.optimizer.kind = OptimizerKind::rowwise_adagrad;
  const auto rounds = [&](const std::vector<int>& first, const std::vector<int>& second) {
    PlacementPlan plan = blank_plan(problem, "columns");
    plan.tables[0].column_devices = first;
    plan.tables[1].column_devices = second;
    return costs_of(problem, plan).rounds_seconds();
  };
  // Opposite ways at the same time take as long as the longer one, one way twice both.
  const RowUses of_0(problem.counts.tables[0], problem.counts.samples, problem.samples, 2);
  const RowUses of_1(problem.counts.tables[1], problem.counts.samples, problem.samples, 2);
  const double rows_0 = use_of_all(problem.counts.tables[0], of_0).touched;
  const double rows_1 = use_of_all(problem.counts.tables[1], of_1).touched;
  EXPECT_NEAR(rounds({0, 1}, {1, 0}), std::max(rows_0, rows_1) * (64 + 4), 1e-6);
  EXPECT_NEAR(rounds({0, 1}, {0, 1}), (rows_0 + rows_1) * (64 + 4), 1e-6);
}

TEST(CostModel, devices_without_a_copy_send_sums_of_rows_with_copies_too) {
  Problem problem = zipf_problem(std::array<int64_t, 1>{1000}, 8, 1.1, 3, 10'000, 5);
  problem.dedup_fetch = false;  // each lookup's own gradient would be more
  PlacementPlan plan = blank_plan(problem, "two copies");
  plan.tables[0].runs = {{1000, plan.path({0, {0, 1, 0}})}};
  const RowUses uses(problem.counts.tables[0], problem.counts.samples, problem.samples, 3);
  const RowUse use = use_of_all(problem.counts.tables[0], uses);
  const double sums = use.distinct * (8 * 4 + 8), finished = use.touched * (8 * 4 + 8);
  const auto expect = [&](CopyReduce reduce, DeviceCosts::Phase phase, int to, int from,
                          double bytes) {
    problem.reduce = reduce;
    EXPECT_NEAR(costs_of(problem, plan).moved(phase, to, from), bytes, 1e-6);
  };
  expect(CopyReduce::sparse, DeviceCosts::sum, 0, 1, sums);
  expect(CopyReduce::sparse, DeviceCosts::sum, 0, 2, sums);
  expect(CopyReduce::sparse, DeviceCosts::reduce, 1, 0, finished);
  expect(CopyReduce::sparse, DeviceCosts::reduce, 2, 0, 0);
  expect(CopyReduce::all_gather, DeviceCosts::sum, 1, 2, sums);
  expect(CopyReduce::all_gather, DeviceCosts::sum, 2, 1, 0);
  expect(CopyReduce::dense, DeviceCosts::reduce, 2, 1, 1000 * 8 * 4 / 3.0);
}

TEST(CostModel, an_owner_that_pools_sends_one_row_a_bag) {
  Problem problem = zipf_problem(std::array<int64_t, 1>{1000}, 8, 1.1, 2, 10'000, 5);
  problem.counts.tables[0].bags = problem.counts.tables[0].lookups / 10;
  problem.dedup_fetch = false;
  PlacementPlan plan = blank_plan(problem, "whole");
  plan.tables[0].runs = {{1000, plan.path(FetchPath::at(0, 2))}};
  const double fetched = rate(problem, plan).fetched[1 * 2 + 0];
  plan.tables[0].send_pooled = true;
  EXPECT_NEAR(rate(problem, plan).fetched[1 * 2 + 0], fetched / 10, 1e-3 * fetched);
}

TEST(CostModel, names_the_device_that_is_short_of_memory_and_by_how_much) {
  Problem problem = figure_2();
  problem.cluster.devices[1].memory_bytes = 1;
  const Rating rating = rate(problem, plan_of(problem, {{0, 0, 0, 0}, {0, 0, 0}, {1, 1, 1, 1, 1}}));
  EXPECT_NE(rating.does_not_fit().find("device 1 is short of"), std::string::npos);
  problem.cluster.devices[1].memory_bytes = 28;
  EXPECT_EQ(
      rate(problem, plan_of(problem, {{0, 0, 0, 0}, {0, 0, 0}, {1, 1, 1, 1, 1}})).does_not_fit(),
      "");
}

TEST(Problem, bad_counts_and_links_are_named_and_refused) {
  Problem problem = figure_2();
  EXPECT_TRUE(check_problem(problem).ok());
  const auto error = [](const Problem& bad) {
    const Status status = check_problem(bad);
    EXPECT_EQ(status.code(), Status::Code::bad_request);
    return status.message();
  };
  Problem zero = problem;
  zero.cluster.links[1].byte_seconds = 0;
  EXPECT_NE(error(zero).find("the link from device 1 to device 0 takes 0 seconds a byte"),
            std::string::npos);
  Problem hole = problem;
  hole.cluster.links.pop_back();
  EXPECT_EQ(error(hole), "3 links for 2 devices, of 4");
  Problem other = problem;
  other.counts.tables[1].rows = 4;
  EXPECT_NE(error(other).find("counts are of another data set: table 't1' of 4 rows"),
            std::string::npos);
  other.counts.tables.pop_back();
  EXPECT_NE(error(other).find("counts are of another data set: 2 tables"), std::string::npos);
}

}  // namespace
}  // namespace recmill::placement
