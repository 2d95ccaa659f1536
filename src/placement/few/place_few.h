// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "placement/device_costs.h"
#include "placement_plan/placement_plan.h"

namespace recmill::placement {

/// Loads up to which placing them is worth a search.
constexpr int64_t kFewLoads = 400;

/// Paths for few loads, whose slowest device is near the fastest that it can be: the best of the
/// searches that start from `homes` [loads] (and then, with `copies`, from Algorithm 1's copies),
/// from where a linear program has most of each load, and from share_copies(), and then annealed.
/// `placed`: what is there already. With `copies` (inference only) loads may have several. Bad
/// request where they fit in no way.
Result<std::vector<FetchPath>> place_few(const Problem& problem, std::span<const Load> loads,
                                         std::span<const double> budgets, bool copies,
                                         std::span<const int> homes, const DeviceCosts& placed);

}  // namespace recmill::placement
