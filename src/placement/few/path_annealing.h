// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "placement/device_costs.h"
#include "placement_plan/placement_plan.h"

namespace recmill::placement {

/// Makes the slowest device faster, for few loads with copies, by simulated annealing: steps that
/// are numbers of a fixed sequence make, drop, move and exchange copies and change where they are
/// fetched from, and are taken back the more likely the slower they are; the best paths on the way
/// stay. `paths` fit `budgets` [devices], and still do. `costs`: of everything placed, changes with
/// them. Inference only.
void anneal_paths(const Problem& problem, std::span<const Load> loads,
                  std::span<const double> budgets, std::vector<FetchPath>& paths,
                  DeviceCosts& costs);

}  // namespace recmill::placement
