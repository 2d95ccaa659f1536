// SPDX-License-Identifier: Apache-2.0
// Partitions few enough for a solver.
#pragma once

#include <span>
#include <vector>

#include "placement/oper/partition.h"
#include "placement/problem.h"

namespace recmill::bench {

/// A problem's partitions as section 4.1 of OPER has them, cut by the thresholds alone: the planner
/// cuts each table into as many parts for each device besides, which is too many for a solver.
class FewPartitions {
 public:
  FewPartitions(const placement::Problem& problem, const placement::Thresholds& thresholds);

  const std::vector<placement::Load>& loads() const { return loads_; }
  /// The device of each partition where all are balanced with one copy within `budgets` bytes.
  Result<std::vector<int>> homes(const placement::Problem& problem,
                                 std::span<const double> budgets) const;

 private:
  std::vector<placement::HotOrder> orders_;
  placement::Partitioning partitioning_;
  std::vector<placement::Partition> partitions_;  // that have rows
  std::vector<placement::Load> loads_;            // beside
};

/// The finest ones, by one threshold for accesses and (up to a tenth) memory, that are `most` at
/// most.
FewPartitions finest_partitions(const placement::Problem& problem, size_t most);

/// `loads` in descending order of accesses a byte of memory, and merged with their neighbours into
/// `most` at most: cut at will, they can be placed in almost every way that `loads` can.
std::vector<placement::Load> merged_by_density(std::span<const placement::Load> loads, size_t most);

}  // namespace recmill::bench
