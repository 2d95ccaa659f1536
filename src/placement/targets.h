// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "placement/balance.h"

namespace recmill::placement {

/// The shares of fetches and of memory that devices should have. On equal devices with equal links:
/// equal ones. Else by a linear program, in which rows may be cut at will: first the slowest device
/// as fast as can be, then memory in proportion to the devices' own. `rest`: what is to be placed
/// with one copy, that part of it which is bounded by access, and `placed`, what is placed already.
Targets find_targets(const Problem& problem, const Load& rest, const Load& access_bounded,
                     const DeviceCosts& placed);

}  // namespace recmill::placement
