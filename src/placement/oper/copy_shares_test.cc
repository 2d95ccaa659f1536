// SPDX-License-Identifier: Apache-2.0
#include "placement/oper/copy_shares.h"

#include <gtest/gtest.h>

#include <cmath>

#include "placement/cost_model.h"
#include "placement/few/path_program.h"
#include "placement/memory_budget.h"
#include "placement/planners.h"
#include "placement/testing/random_problem.h"

namespace recmill::placement {
namespace {

/// Densities from e^10 to 1 in equal steps, as much memory each but for the last ones, which are
/// ranges.
std::vector<Load> skewed_loads(size_t listed, size_t ranges) {
  std::vector<Load> loads(listed + ranges);
  for (size_t p = 0; p < loads.size(); ++p) {
    const double share = static_cast<double>(p) / static_cast<double>(loads.size());
    loads[p].memory = p < listed ? 100 : 200;
    loads[p].fetched = loads[p].looked_up = loads[p].memory * std::exp(10 - 10 * share) / 1000;
    loads[p].requested = loads[p].fetched / 8;
  }
  return loads;
}

void part_nodes(ClusterSpec& cluster, int first, double seconds) {
  for (int to = 0; to < cluster.size(); ++to)
    for (int from = 0; from < cluster.size(); ++from)
      if ((to < first) != (from < first))
        cluster.links[to * cluster.size() + from].byte_seconds = seconds;
}

std::vector<ClusterSpec> unequal_clusters(int64_t memory) {
  std::vector<ClusterSpec> clusters{equal_devices(6, memory, 0.05), equal_devices(6, memory, 0.05),
                                    equal_devices(6, memory, 0.05)};
  part_nodes(clusters[0], 4, 4.21);
  clusters[1].links[1].byte_seconds = clusters[1].links[6].byte_seconds = 10;
  clusters[2].devices[0].memory_bytes /= 2;
  return clusters;
}

TEST(ShareCopies, keep_to_budgets_and_come_near_the_bound_of_cutting_at_will) {
  const std::vector<Load> loads = skewed_loads(1500, 500);
  double memory = 0;
  for (const Load& load : loads) memory += load.memory;
  for (const ClusterSpec& cluster : unequal_clusters(static_cast<int64_t>(memory))) {
    Problem problem;
    problem.cluster = cluster;
    problem.training = problem.dedup_fetch = false;
    double limits = 0;
    for (const DeviceSpec& device : cluster.devices)
      limits += static_cast<double>(device.memory_bytes);
    std::vector<double> budgets;
    for (const DeviceSpec& device : cluster.devices)
      budgets.push_back(1.5 * memory * static_cast<double>(device.memory_bytes) / limits);
    const auto shared = share_copies(problem, loads, 1500, budgets);
    ASSERT_TRUE(shared.ok()) << shared.status().message();
    EXPECT_EQ(shared->paths, share_copies(problem, loads, 1500, budgets)->paths);
    DeviceCosts costs(problem);
    for (size_t p = 0; p < loads.size(); ++p) {
      costs.add(loads[p], shared->paths[p]);
      EXPECT_TRUE(p < 1500 || shared->paths[p].copies() == 1) << p;
    }
    for (int d = 0; d < cluster.size(); ++d)
      EXPECT_LE(costs.memory(d), budgets[d] * (1 + 1e-9)) << "device " << d;
    // Sixteen neighbours at a time: the program has too many columns else.
    std::vector<Load> merged;
    for (size_t p = 0; p < loads.size(); ++p)
      p % 16 == 0 ? merged.push_back(loads[p]) : void(merged.back() += loads[p]);
    const auto cut = solve_by_cutting(problem, merged, budgets, true);
    ASSERT_TRUE(cut.ok()) << cut.status().message();
    EXPECT_LE(costs.largest_seconds(), 1.05 * cut->bound);
    EXPECT_NEAR(costs.largest_seconds(), shared->seconds, 0.05 * shared->seconds);
  }
}

TEST(ShareCopies, make_plans_of_unequal_devices_near_a_bound_and_within_their_memory) {
  const int64_t rows[] = {1461, 581, 92147, 20316, 306, 24, 12471, 3};
  Problem problem = testing::zipf_problem(rows, 16, 1.05, 6, 1'000'000, 3);
  problem.training = problem.dedup_fetch = false;
  for (const ClusterSpec& cluster : unequal_clusters(problem.total_bytes() / 3)) {
    problem.cluster = cluster;
    PlannerOptions options;
    options.extra_memory = 0.05;
    const auto proposal = plan_placement(problem, PlannerKind::oper, options);
    ASSERT_TRUE(proposal.ok()) << proposal.status().message();
    const DeviceCosts costs = costs_of(problem, proposal->plan);
    const auto budgets = memory_budgets(problem, 0.05);
    for (int d = 0; d < cluster.size(); ++d)
      EXPECT_LE(costs.memory(d), (*budgets)[d] * 1.003) << "device " << d;
    options.extra_memory = 0;
    const auto single = plan_placement(problem, PlannerKind::oper, options);
    ASSERT_TRUE(single.ok()) << single.status().message();
    EXPECT_LT(3 * costs.largest_seconds(), costs_of(problem, single->plan).largest_seconds());
  }
}

}  // namespace
}  // namespace recmill::placement
