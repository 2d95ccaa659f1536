// SPDX-License-Identifier: Apache-2.0
// Partitions to devices, one copy each: OPER's balanced model parallelism (section 4.2).
#pragma once

#include <span>
#include <vector>

#include "placement/oper/partition.h"

namespace recmill::placement {

/// What each device should have of the partitions to place: bytes that one device fetches, and
/// bytes of memory.
struct Targets {
  std::vector<double> fetched, memory;  // [devices]
  double seconds = 0;  // of the slowest device that has so much; of unequal devices alone
};

/// Bytes that another device fetches from `device`, on average.
double fetched_from(const DeviceCosts& costs, int device);

/// Access-bounded partitions in descending order of accesses, each to the device that has the least
/// of its target; then the others in descending order of memory, each to the device that has the
/// least memory of its target; then moves and exchanges as long as they bring the devices nearer to
/// their targets. Gives the device of each partition. Ties go to the lower partition and device.
std::vector<int> balance(std::span<const Partition> partitions, const Targets& targets);

}  // namespace recmill::placement
