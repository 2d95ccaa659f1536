// SPDX-License-Identifier: Apache-2.0
#include "bench/placement/few_partitions.h"

#include <algorithm>
#include <cmath>

#include "placement/oper/balance.h"
#include "placement/oper/targets.h"

namespace recmill::bench {
namespace {

using placement::Load;

constexpr double kMostMemory =
    0.1;  // of all rows, in a partition: few devices can hold larger ones

placement::Partitioning cut_by_thresholds(const placement::Problem& problem,
                                          const std::vector<placement::HotOrder>& orders,
                                          const placement::Thresholds& thresholds) {
  placement::Problem one = problem;
  one.cluster = placement::equal_devices(1, problem.total_bytes());
  return {one, orders, thresholds};
}

double density(const Load& load) {
  return load.fetched / std::max(load.memory, 1e-300);
}

}  // namespace

FewPartitions::FewPartitions(const placement::Problem& problem,
                             const placement::Thresholds& thresholds)
    : orders_(placement::hot_orders(problem.counts)),
      partitioning_(cut_by_thresholds(problem, orders_, thresholds)) {
  for (const placement::Partition& partition : partitioning_.partitions()) {
    if (partition.load.memory <= 0) continue;
    partitions_.push_back(partition);
    loads_.push_back(partition.load);
  }
}

Result<std::vector<int>> FewPartitions::homes(const placement::Problem& problem,
                                              std::span<const double> budgets) const {
  RECMILL_ASSIGN_OR_RETURN(
      const placement::Targets targets,
      placement::find_targets(problem, partitioning_.all(), partitioning_.access_bounded(),
                              placement::DeviceCosts(problem), budgets));
  return placement::balance(partitions_, targets);
}

FewPartitions finest_partitions(const placement::Problem& problem, size_t most) {
  placement::Thresholds thresholds;
  for (int step = 0;; ++step) {
    thresholds.access = 0.002 * std::exp2(step / 4.0);
    thresholds.memory = std::min(thresholds.access, kMostMemory);
    FewPartitions few(problem, thresholds);
    if (few.loads().size() <= most || thresholds.access >= 1) return few;
  }
}

std::vector<Load> merged_by_density(std::span<const Load> loads, size_t most) {
  std::vector<Load> ordered(loads.begin(), loads.end());
  std::ranges::stable_sort(ordered, std::greater<>(), density);
  // Neighbours of about the same density first: the fewest octaves for which they are `most`.
  for (double octaves = 1.0 / 64;; octaves *= 1.25) {
    std::vector<Load> merged;
    double first = 0;
    for (const Load& load : ordered) {
      if (merged.empty() || density(load) < first * std::exp2(-octaves)) {
        first = density(load);
        merged.push_back(load);
      } else {
        merged.back() += load;
      }
    }
    if (merged.size() <= most) return merged;
  }
}

}  // namespace recmill::bench
