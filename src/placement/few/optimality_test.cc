// SPDX-License-Identifier: Apache-2.0
// How near the searches for few partitions come to the best way there is.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "placement/few/path_program.h"
#include "placement/few/place_few.h"

namespace recmill::placement {
namespace {

Problem random_cluster(int devices, std::mt19937_64& random) {
  Problem problem;
  problem.cluster = equal_devices(devices, 1'000'000, 0.2);
  for (int to = 0; to < devices; ++to)
    for (int from = 0; from < to; ++from)
      problem.cluster.links[to * devices + from].byte_seconds =
          problem.cluster.links[from * devices + to].byte_seconds =
              1 + static_cast<double>(random() % 40) / 10;
  problem.training = false;
  return problem;
}

std::vector<Load> random_loads(size_t count, std::mt19937_64& random) {
  std::vector<Load> loads(count);
  for (Load& load : loads) {
    load.memory = static_cast<double>(50 + random() % 100);
    load.fetched = std::exp(static_cast<double>(random() % 4000) / 1000);
    load.looked_up = load.fetched;
    load.requested = load.fetched / 8;
  }
  return loads;
}

double searched(const Problem& problem, const std::vector<Load>& loads,
                const std::vector<double>& budgets, bool copies) {
  std::vector<int> homes;
  for (size_t p = 0; p < loads.size(); ++p)
    homes.push_back(static_cast<int>(p) % problem.devices());
  const auto placed = place_few(problem, loads, budgets, copies, homes, DeviceCosts(problem));
  EXPECT_TRUE(placed.ok()) << placed.status().message();
  const std::vector<FetchPath>& paths = *placed;
  DeviceCosts again(problem);
  for (size_t p = 0; p < loads.size(); ++p) again.add(loads[p], paths[p]);
  for (int d = 0; d < problem.devices(); ++d) EXPECT_LE(again.memory(d), budgets[d] * (1 + 1e-9));
  return again.largest_seconds();
}

double total_memory(const std::vector<Load>& loads) {
  double memory = 0;
  for (const Load& load : loads) memory += load.memory;
  return memory;
}

TEST(Optimality, eight_partitions_on_three_devices_are_within_2_percent_of_the_best) {
  for (const bool copies : {false, true}) {
    for (uint64_t seed = 0; seed < (copies ? 12 : 100); ++seed) {
      std::mt19937_64 random(seed);
      const Problem problem = random_cluster(3, random);
      const std::vector<Load> loads = random_loads(8, random);
      const std::vector<double> budgets(3, total_memory(loads) / 3 * 1.6);
      const double found = searched(problem, loads, budgets, copies);
      const auto best = solve_paths(problem, loads, budgets, copies, {});
      ASSERT_TRUE(best.ok()) << best.status().message();
      EXPECT_GE(found, best->seconds * (1 - 1e-6)) << "seed " << seed;
      EXPECT_LE(found, best->seconds * 1.02) << "seed " << seed << (copies ? ", copies" : "");
    }
  }
}

// Loads in pairs that are alike, on devices that are interchangeable and on others.
TEST(Optimality, no_time_is_ruled_out_that_some_paths_take) {
  int ruled_out = 0;
  for (const bool equal : {true, false}) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      std::mt19937_64 random(seed);
      Problem problem = random_cluster(3, random);
      if (equal) problem.cluster = equal_devices(3, 1'000'000, 0.2);
      std::vector<Load> loads = random_loads(4, random);
      for (size_t p = 0; p < 4; ++p)
        loads.push_back(loads[p] * (1 + static_cast<double>(random() % 100) / 1e5));
      const std::vector<double> budgets(3, total_memory(loads) / 3 * 1.6);
      const auto best = solve_paths(problem, loads, budgets, true, {});
      ASSERT_TRUE(best.ok()) << best.status().message();
      const auto possible = rule_out(problem, loads, budgets, best->seconds * (1 + 1e-5), {});
      ASSERT_TRUE(possible.ok()) << possible.status().message();
      EXPECT_FALSE(*possible) << "seed " << seed;
      const auto too_fast = rule_out(problem, loads, budgets, best->seconds * 0.99, {});
      ASSERT_TRUE(too_fast.ok()) << too_fast.status().message();
      ruled_out += *too_fast ? 1 : 0;
    }
  }
  EXPECT_GE(ruled_out, 6);  // of 8; alike loads may hide some
}

TEST(Optimality, many_partitions_come_near_the_bound_of_cutting_them_at_will) {
  for (const bool copies : {false, true}) {
    for (const size_t count : {50, 100, 200}) {
      std::mt19937_64 random(count);
      const Problem problem = random_cluster(4, random);
      const std::vector<Load> loads = random_loads(count, random);
      const std::vector<double> budgets(4, total_memory(loads) / 4 * (copies ? 1.3 : 1.05));
      const double found = searched(problem, loads, budgets, copies);
      const auto cut = solve_by_cutting(problem, loads, budgets, copies);
      ASSERT_TRUE(cut.ok()) << cut.status().message();
      const double bound = cut->bound;
      EXPECT_GE(found, bound * (1 - 1e-6));
      // With copies cutting gains some percent that no whole loads do.
      EXPECT_LE(found, bound * (copies ? 1.05 : 1.01)) << count << (copies ? ", copies" : "");
    }
  }
}

}  // namespace
}  // namespace recmill::placement
