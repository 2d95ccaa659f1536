// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "placement/oper/partition.h"
#include "placement_plan/placement_plan.h"

namespace recmill::placement {

struct PlacedPartition {
  const Partition* partition = nullptr;
  const FetchPath* path = nullptr;
};

/// A plan in which each partition goes by its path. Every row is in one: ranges cover each table,
/// and listed rows are in one list at most.
PlacementPlan build_plan(const Problem& problem, const std::string& planner,
                         std::span<const PlacedPartition> placed);

/// Tables without rows placed yet.
PlacementPlan blank_plan(const Problem& problem, const std::string& planner);

}  // namespace recmill::placement
