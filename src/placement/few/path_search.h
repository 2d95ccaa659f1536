// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "placement/device_costs.h"
#include "placement_plan/placement_plan.h"

namespace recmill::placement {

/// Makes the slowest device faster, for few loads: moves them, exchanges two, and with `copies`
/// makes, drops and exchanges copies and lets devices fetch from other ones, as long as that helps
/// and no device takes more memory than its part of `budgets` [devices]. Of very few
/// loads on very few devices the best of all ways. `costs`: of everything placed, changes with
/// `paths`.
void search_paths(const Problem& problem, std::span<const Load> loads,
                  std::span<const double> budgets, bool copies, std::vector<FetchPath>& paths,
                  DeviceCosts& costs);

}  // namespace recmill::placement
