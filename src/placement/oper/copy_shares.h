// SPDX-License-Identifier: Apache-2.0
// Copies for unequal devices and links, where the greedy walk of Algorithm 1 is short-sighted: it
// takes from the slowest source without asking who is slow altogether.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "placement/device_costs.h"
#include "placement_plan/placement_plan.h"

namespace recmill::placement {

/// Devices up to which every set of them is looked at as the holders of a row.
constexpr int kMostSharingDevices = 8;

struct SharedCopies {
  std::vector<FetchPath> paths;  // [loads]
  double seconds = 0;            // of the slowest device, if loads were cut at will
};

/// Inference: paths of many small loads. Loads of about the same density are a class; a linear
/// program gives each set of devices a share of each class, so that the slowest device is as fast
/// as can be within `budgets` [devices] bytes, and the loads of a class are dealt by these shares.
/// Only the first `listed` loads may have copies. Bad request where they fit in no way.
Result<SharedCopies> share_copies(const Problem& problem, std::span<const Load> loads,
                                  size_t listed, std::span<const double> budgets);

}  // namespace recmill::placement
