// SPDX-License-Identifier: Apache-2.0
#include "placement/replan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "placement/build_plan.h"
#include "placement/cost_model.h"
#include "placement/planners.h"
#include "placement/testing/random_problem.h"

namespace recmill::placement {
namespace {

TEST(Replan, moves_to_each_device_what_it_has_not_from_where_it_fetched_it) {
  Problem problem = testing::zipf_problem(std::vector<int64_t>{10, 4}, 32, 1.0, 3, 100, 1);
  PlacementPlan from = blank_plan(problem, "test");
  const int at0 = from.path(FetchPath::at(0, 3)), at2 = from.path(FetchPath::at(2, 3));
  const int all = from.path(FetchPath::everywhere(1, 3));
  const int at1 = from.path(FetchPath::at(1, 3));
  PlacementPlan to = from;
  from.tables[0].runs = {{6, at0}, {10, all}};
  from.tables[0].listed_rows = {2};
  from.tables[0].listed_paths = {at2};
  from.tables[1].column_devices = {2, 0};
  to.tables[0].runs = {{5, at0}, {8, at1}, {10, all}};  // row 2 from 2 to 0, row 5 from 0 to 1
  to.tables[1].column_devices = {0, 1};  // 16 columns from 2 to 0, and 16 from 0 to 1
  const double row = static_cast<double>(problem.tables[0].row_bytes);
  const PlanMove move = move_between(problem, from, to);
  EXPECT_EQ(move.rows, 1 + 1 + 4 + 4);
  EXPECT_EQ(move.bytes, row + row + 4 * row / 2 + 4 * row / 2);
  EXPECT_EQ(move.seconds, 3 * row);  // a byte takes one second
  EXPECT_EQ(move_between(problem, from, from).bytes, 0);
}

TEST(Replan, pays_where_what_is_left_gains_more_than_the_move_takes) {
  const ReplanCase of{1.0, 2.0, 0.1};
  EXPECT_TRUE(has_drifted(of));
  EXPECT_FALSE(has_drifted({1.0, 1.09, 0.1}));
  EXPECT_TRUE(pays(of, 1.0, 99, 100));
  EXPECT_FALSE(pays(of, 1.0, 101, 100));
  EXPECT_FALSE(pays(of, 1.9, 0, 100));
}

/// `samples` drawn by Zipf's law over ranks, rank k being row (k * 7919 + shift) mod rows.
TableCounts drawn(const std::string& table, int64_t rows, int64_t shift, int64_t samples,
                  uint64_t seed) {
  std::vector<double> weights;
  for (int64_t k = 0; k < rows; ++k) weights.push_back(std::pow(static_cast<double>(k + 1), -1.1));
  std::discrete_distribution<int64_t> law(weights.begin(), weights.end());
  std::mt19937_64 random(seed);
  std::vector<int64_t> counts(rows);
  for (int64_t i = 0; i < samples; ++i) ++counts[(law(random) * 7919 + shift) % rows];
  return testing::counts_of(table, counts, 1, 64);
}

TEST(Replan, sees_ids_that_change_places_and_no_noise_of_samples) {
  constexpr int64_t kRows = 20'000, kSamples = 8'000;
  Problem problem = testing::zipf_problem(std::vector<int64_t>(4, kRows), 16, 1.1, 4, kSamples, 1);
  problem.dedup_fetch = false;
  problem.samples = 512;
  const auto count = [&](int64_t shift, uint64_t seed) {
    for (size_t t = 0; t < problem.tables.size(); ++t)
      problem.counts.tables[t] =
          drawn(problem.tables[t].spec.name, kRows, shift, kSamples, seed * 100 + t);
    problem.counts.samples = kSamples;
  };
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    count(0, seed);
    const auto proposal = plan_placement(problem, PlannerKind::oper, {});
    ASSERT_TRUE(proposal.ok()) << proposal.status().message();
    count(0, seed + 10);
    ReplanCase of{rate(problem, proposal->plan).seconds, 0, 0.1};
    for (uint64_t again = 20; again < 24; ++again) {
      count(0, seed + again);
      of.now = rate(problem, proposal->plan).seconds;
      EXPECT_FALSE(has_drifted(of)) << of.expected << ", " << of.now;
    }
    count(kRows / 2, seed + 30);
    of.now = rate(problem, proposal->plan).seconds;
    EXPECT_TRUE(has_drifted(of)) << of.expected << ", " << of.now;
    const auto anew = plan_placement(problem, PlannerKind::oper, {});
    ASSERT_TRUE(anew.ok());
    const double planned = rate(problem, anew->plan).seconds;
    EXPECT_TRUE(pays(of, planned, move_between(problem, proposal->plan, anew->plan).seconds, 1000));
  }
}

}  // namespace
}  // namespace recmill::placement
