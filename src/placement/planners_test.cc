// SPDX-License-Identifier: Apache-2.0
#include "placement/planners.h"

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>

#include "placement/cost_model.h"
#include "placement/testing/random_problem.h"

namespace recmill::placement {
namespace {

using testing::zipf_problem;

constexpr std::array<int64_t, 8> kRows{1461, 581, 92147, 20316, 306, 24, 12471, 3};

std::vector<TableSpec> specs_of(const Problem& problem) {
  std::vector<TableSpec> specs;
  for (const PlacedTable& table : problem.tables) specs.push_back(table.spec);
  return specs;
}

TEST(Planners, every_planner_places_every_row_and_gives_the_same_plan_again) {
  for (const int devices : {1, 2, 3, 8}) {
    for (const bool training : {false, true}) {
      Problem problem = zipf_problem(kRows, 32, 1.05, devices, 100'000, 7);
      problem.training = training;
      PlannerOptions options;
      options.milp_nodes = 1;
      for (const auto& [kind, name] : EnumNames<PlannerKind>::names) {
        if (kind == PlannerKind::milp && devices > 2) continue;  // slow
        const auto proposal = plan_placement(problem, kind, options);
        ASSERT_TRUE(proposal.ok()) << name << ": " << proposal.status().message();
        const Status status = check_plan(proposal->plan, specs_of(problem), devices);
        EXPECT_TRUE(status.ok()) << name << ": " << status.message();
        EXPECT_EQ(plan_placement(problem, kind, options)->plan, proposal->plan) << name;
        EXPECT_EQ(proposal->plan.planner, name);
      }
    }
  }
}

// Of partitions that are rows, few of which make a device's part.
TEST(Planners, every_planner_places_tables_of_few_rows_on_any_devices) {
  PlannerOptions options;
  options.milp_nodes = 1;
  options.milp_iterations = 200;
  for (int devices = 1; devices <= 8; ++devices) {
    for (const int64_t rows : {1, 3, 10, 12}) {
      const std::array<int64_t, 3> tables{rows, 2, 5};
      const Problem problem =
          zipf_problem(std::span(tables).first(rows == 12 ? 3 : 1), 4, 1.1, devices, 200, 3);
      for (const auto& [kind, name] : EnumNames<PlannerKind>::names) {
        const std::string said = std::string(name) + ", " + std::to_string(rows) + " rows, " +
                                 std::to_string(devices) + " devices";
        const auto proposal = plan_placement(problem, kind, options);
        ASSERT_TRUE(proposal.ok()) << said << ": " << proposal.status().message();
        const Status status = check_plan(proposal->plan, specs_of(problem), devices);
        EXPECT_TRUE(status.ok()) << said << ": " << status.message();
        EXPECT_EQ(rate(problem, proposal->plan).does_not_fit(), "") << said;
        for (const std::string& note : proposal->notes)
          EXPECT_EQ(note.find("nan"), std::string::npos) << said << ": " << note;
      }
    }
  }
}

TEST(Planners, hot_cold_has_hot_rows_everywhere_and_the_others_once) {
  for (const int devices : {1, 3, 8}) {
    Problem problem = zipf_problem(kRows, 32, 1.05, devices, 100'000, 7);
    const auto proposal = plan_placement(problem, PlannerKind::hot_cold, {});
    ASSERT_TRUE(proposal.ok()) << proposal.status().message();
    ASSERT_TRUE(check_plan(proposal->plan, specs_of(problem), devices).ok());
    const HotRows hot(*problem.hot_set);
    int64_t copied = 0;
    for (size_t t = 0; t < proposal->plan.tables.size(); ++t) {
      PathCursor cursor(proposal->plan.tables[t]);
      for (int64_t row = 0; row < problem.tables[t].spec.rows; ++row) {
        const int copies = proposal->plan.paths[static_cast<size_t>(cursor.at(row))].copies();
        EXPECT_EQ(copies, hot.is_hot(t, row) ? devices : 1) << t << " " << row;
        copied += hot.is_hot(t, row);
      }
    }
    EXPECT_EQ(copied, problem.hot_set->hot());
    problem.hot_set = nullptr;
    EXPECT_FALSE(plan_placement(problem, PlannerKind::hot_cold, {}).ok());
  }
}

TEST(Planners, the_milp_refuses_copies_of_more_than_few_partitions) {
  Problem problem = zipf_problem(kRows, 32, 1.05, 16, 100'000, 7);
  problem.training = false;
  const auto proposal = plan_placement(problem, PlannerKind::milp, {});
  ASSERT_FALSE(proposal.ok());
  EXPECT_EQ(proposal.status().code(), Status::Code::bad_request);
  EXPECT_NE(proposal.status().message().find("the fewest that there are, on 16 devices"),
            std::string::npos)
      << proposal.status().message();
}

TEST(Planners, oper_balances_memory_lookups_and_communication) {
  for (const double exponent : {1.05, 1.2}) {
    for (const double extra : {0.0, 0.01, 0.05}) {
      Problem problem = zipf_problem(kRows, 16, exponent, 8, 1'000'000, 11);
      problem.training = false;
      problem.dedup_fetch = false;
      PlannerOptions options;
      options.extra_memory = extra;
      const auto proposal = plan_placement(problem, PlannerKind::oper, options);
      ASSERT_TRUE(proposal.ok()) << proposal.status().message();
      const Rating rating = rate(problem, proposal->plan);
      const auto said = ::testing::Message()
                        << "Zipf " << exponent << ", " << extra << " more memory";
      EXPECT_GE(rating.memory.degree(), extra == 0 ? 0.991 : 0.98) << said;
      EXPECT_GE(rating.lookups.degree(), extra == 0 ? 0.991 : 0.98) << said;
      EXPECT_GE(rating.communication.degree(), 0.99) << said;
      EXPECT_GE(rating.pair_bytes.degree(), 0.95) << said;
      EXPECT_LE(rating.extra_bytes, extra * static_cast<double>(problem.total_bytes()) * 1.001);
      EXPECT_EQ(rating.extra_copies > 0, extra > 0) << said;
    }
  }
}

TEST(Planners, oper_makes_no_copies_that_devices_have_no_memory_for) {
  for (const double room : {1.005, 1.02, 1.05}) {
    for (const bool training : {false, true}) {
      for (const bool alike : {true, false}) {
        Problem problem = zipf_problem(kRows, 16, 1.2, 4, 100'000, 3);
        problem.training = training;
        problem.dedup_fetch = false;
        const std::array<double, 4> shares =
            alike ? std::array{0.25, 0.25, 0.25, 0.25} : std::array{0.15, 0.15, 0.35, 0.35};
        for (int d = 0; d < 4; ++d)
          problem.cluster.devices[d].memory_bytes =
              static_cast<int64_t>(room * shares[d] * static_cast<double>(problem.total_bytes()));
        const auto proposal = plan_placement(problem, PlannerKind::oper, {});
        ASSERT_TRUE(proposal.ok()) << proposal.status().message();
        const Rating rating = rate(problem, proposal->plan);
        EXPECT_EQ(rating.does_not_fit(), "") << room << ", training " << training << ", " << alike;
        const bool says = !proposal->notes.empty() &&
                          proposal->notes.back().find("of 5.00 % wanted") != std::string::npos;
        EXPECT_TRUE(room > 1.04 || says);
        EXPECT_TRUE(room < 1.01 || rating.extra_copies > 0) << room << ", training " << training;
      }
    }
  }
}

TEST(Planners, torchrec_like_finds_a_way_in_little_more_memory_than_rows_take) {
  for (const bool training : {false, true}) {
    Problem problem = zipf_problem(kRows, 64, 1.2, 4, 100'000, 3);
    problem.training = training;
    for (DeviceSpec& device : problem.cluster.devices)
      device.memory_bytes = problem.total_bytes() / 4 * 105 / 100;
    const auto proposal = plan_placement(problem, PlannerKind::torchrec_like, {});
    ASSERT_TRUE(proposal.ok()) << proposal.status().message();
    EXPECT_EQ(rate(problem, proposal->plan).does_not_fit(), "");
  }
}

}  // namespace
}  // namespace recmill::placement
