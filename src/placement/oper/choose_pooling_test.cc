// SPDX-License-Identifier: Apache-2.0
#include "placement/oper/choose_pooling.h"

#include <gtest/gtest.h>

#include <array>

#include "placement/cost_model.h"
#include "placement/testing/random_problem.h"

namespace recmill::placement {
namespace {

/// Two tables, of one lookup a bag and of twenty.
Problem two_tables() {
  Problem problem =
      testing::zipf_problem(std::array<int64_t, 2>{200'000, 200'000}, 16, 1.05, 4, 20'000, 3);
  problem.counts.tables[1].bags = problem.counts.tables[1].lookups / 20;
  problem.samples = 1000;
  return problem;
}

double seconds_of_all(const Rating& rating) {
  double seconds = 0;
  for (const DeviceRating& device : rating.devices) seconds += device.seconds();
  return seconds;
}

TEST(ChoosePooling, owners_pool_long_bags_where_that_is_less_and_the_run_is_not_deterministic) {
  Problem problem = two_tables();
  for (const bool dedup : {false, true}) {
    problem.dedup_fetch = dedup;
    for (const auto kind :
         {PlannerKind::table_wise, PlannerKind::column_wise, PlannerKind::row_wise}) {
      problem.deterministic = true;
      auto proposal = plan_placement(problem, kind, {});
      ASSERT_TRUE(proposal.ok()) << proposal.status().message();
      for (const TablePlacement& table : proposal->plan.tables) EXPECT_FALSE(table.send_pooled);
      const double fetched = seconds_of_all(rate(problem, proposal->plan));
      problem.deterministic = false;
      proposal = plan_placement(problem, kind, {});
      ASSERT_TRUE(proposal.ok()) << proposal.status().message();
      EXPECT_TRUE(proposal->plan.tables[1].send_pooled) << name_of(kind);
      EXPECT_LT(seconds_of_all(rate(problem, proposal->plan)), fetched) << name_of(kind);
      EXPECT_NE(proposal->notes.back().find("owners pool the bags of"), std::string::npos);
    }
  }
}

TEST(ChoosePooling, rows_are_fetched_of_sequences_and_where_many_bags_have_the_same_few_rows) {
  Problem problem = two_tables();
  problem.deterministic = false;
  problem.tables[1].all_pooled = false;
  auto proposal = plan_placement(problem, PlannerKind::table_wise, {});
  ASSERT_TRUE(proposal.ok()) << proposal.status().message();
  EXPECT_FALSE(proposal->plan.tables[1].send_pooled);
  problem = testing::zipf_problem(std::array<int64_t, 1>{10}, 16, 1.05, 4, 100'000, 3);
  problem.deterministic = false;
  problem.samples = 1000;
  proposal = plan_placement(problem, PlannerKind::table_wise, {});
  ASSERT_TRUE(proposal.ok()) << proposal.status().message();
  EXPECT_FALSE(proposal->plan.tables[0].send_pooled);
}

}  // namespace
}  // namespace recmill::placement
