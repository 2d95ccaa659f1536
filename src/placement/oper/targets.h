// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "base/status.h"
#include "placement/oper/balance.h"

namespace recmill::placement {

/// What devices should have of `rest`, which is to be placed with one copy beside what is `placed`
/// already. On equal devices with equal links: as much as makes them equal. Else by a linear
/// program in which rows may be cut at will: first the slowest device as fast as can be within
/// `budgets` [devices] bytes, then memory in proportion to the devices' own. `access_bounded`: the
/// part of rest whose memory is little.
Result<Targets> find_targets(const Problem& problem, const Load& rest, const Load& access_bounded,
                             const DeviceCosts& placed, std::span<const double> budgets);

}  // namespace recmill::placement
