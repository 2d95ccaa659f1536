// SPDX-License-Identifier: Apache-2.0
#include "placement/oper/duplicate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace recmill::placement {
namespace {

/// Two nodes of two devices; between them a byte takes four times as long.
Problem two_nodes(bool training) {
  Problem problem;
  problem.cluster = equal_devices(4, 1 << 20);
  for (int to = 0; to < 4; ++to)
    for (int from = 0; from < 4; ++from)
      if (to / 2 != from / 2) problem.cluster.links[to * 4 + from].byte_seconds = 4;
  problem.training = training;
  problem.dedup_fetch = false;
  return problem;
}

std::vector<Load> random_loads(size_t count, std::mt19937_64& random) {
  std::vector<Load> loads(count);
  for (Load& load : loads) {
    load.memory = static_cast<double>(64 + random() % 64);
    load.fetched = load.looked_up = static_cast<double>(1 + random() % 1000);
  }
  return loads;
}

TEST(DuplicateForInference, keeps_the_costs_that_a_full_computation_gives) {
  for (const uint64_t seed : {1, 2, 3}) {
    std::mt19937_64 random(seed);
    const Problem problem = two_nodes(false);
    const std::vector<Load> loads = random_loads(60, random);
    std::vector<FetchPath> paths;
    DeviceCosts costs(problem);
    for (size_t p = 0; p < loads.size(); ++p) {
      paths.push_back(FetchPath::at(static_cast<int>(random() % 4), 4));
      costs.add(loads[p], paths[p]);
    }
    std::vector<double> before, spare(4, 900);
    for (int d = 0; d < 4; ++d) before.push_back(costs.memory(d));
    duplicate_for_inference(problem, loads, paths, spare, costs);
    DeviceCosts again(problem);
    for (size_t p = 0; p < loads.size(); ++p) again.add(loads[p], paths[p]);
    for (int to = 0; to < 4; ++to) {
      EXPECT_NEAR(costs.memory(to), again.memory(to), 1e-6);
      EXPECT_NEAR(costs.memory(to), before[to] + 900 - spare[to], 1e-6);
      EXPECT_GE(spare[to], 0);
      EXPECT_LT(spare[to], 128) << "it stops when nothing fits";
      for (int from = 0; from < 4; ++from)
        EXPECT_NEAR(costs.moved(DeviceCosts::fetch, to, from),
                    again.moved(DeviceCosts::fetch, to, from), 1e-6);
    }
  }
}

TEST(DuplicateForInference, a_copy_serves_the_neighbours_of_its_node) {
  const Problem problem = two_nodes(false);
  std::vector<Load> loads(1);
  loads[0].memory = 100;
  loads[0].fetched = 10;
  std::vector<FetchPath> paths{FetchPath::at(0, 4)};
  DeviceCosts costs(problem);
  costs.add(loads[0], paths[0]);
  std::vector<double> spare{0, 0, 101, 0};
  duplicate_for_inference(problem, loads, paths, spare, costs);
  EXPECT_EQ(paths[0].from, (std::vector<int>{0, 0, 2, 2}));
}

TEST(DuplicateForTraining, is_equations_4_and_5_without_deduplication_and_with_equal_bandwidths) {
  for (const int devices : {2, 4, 8}) {
    Problem problem;
    problem.cluster = equal_devices(devices, 1 << 20);
    problem.dedup_fetch = false;
    problem.reduce = CopyReduce::dense;
    PlacedTable table;
    table.spec.dim = 16;
    table.row_bytes = 64;
    for (const double accesses : {0.2, 0.9, 0.999, 1.001, 1.1, 5.0}) {
      Load load = load_of(problem, table, 1, {accesses, 1 - std::exp(-accesses), 1});
      load.requested = 0;  // ids, which the equations leave out
      load.summed = load.fetched;
      const double share = (devices - 1.0) / devices;
      EXPECT_NEAR(mean_seconds(problem, load, false), 2 * accesses * share * 64, 1e-9);
      EXPECT_NEAR(mean_seconds(problem, load, true), 2 * share * 64, 1e-9);
      EXPECT_EQ(duplicate_for_training(problem, std::span(&load, 1), 1e9).size(),
                accesses > 1 ? 1u : 0u);
    }
  }
}

TEST(DuplicateForTraining, saves_no_bytes_where_each_row_is_fetched_once) {
  Problem problem;
  problem.cluster = equal_devices(4, 1 << 20);
  PlacedTable table;
  table.spec.dim = 16;
  table.row_bytes = 64;
  std::vector<Load> loads;
  for (const double n : {0.01, 0.5, 2.0, 10.0})
    loads.push_back(load_of(problem, table, 1, {n, 1 - std::exp(-n), 1 - std::exp(-4 * n)}));
  for (const Load& load : loads) {
    const double once = load.fetched + load.summed, copied = load.aggregated + load.reduced;
    EXPECT_LT(once, copied + 1e-9 + 2 * 8);  // ids apart
  }
}

TEST(DuplicateForTraining, takes_what_gains_the_most_a_byte_within_the_memory_for_it) {
  Problem problem;
  problem.cluster = equal_devices(3, 1 << 20);
  problem.dedup_fetch = false;
  problem.reduce = CopyReduce::dense;
  PlacedTable table;
  table.spec.dim = 16;
  table.row_bytes = 64;
  std::vector<Load> loads;
  for (const double n : {2.0, 30.0, 0.1, 10.0})
    loads.push_back(load_of(problem, table, 1, {n, 1, 1}));
  EXPECT_EQ(duplicate_for_training(problem, loads, 2 * 2 * 64), (std::vector<size_t>{1, 3}));
  EXPECT_EQ(duplicate_for_training(problem, loads, 1e9), (std::vector<size_t>{1, 3, 0}));
}

}  // namespace
}  // namespace recmill::placement
