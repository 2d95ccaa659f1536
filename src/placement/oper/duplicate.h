// SPDX-License-Identifier: Apache-2.0
// Copies of rows on several devices, where memory is left (OPER, section 4.3).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "placement/device_costs.h"
#include "placement_plan/placement_plan.h"

namespace recmill::placement {

/// For inference, Algorithm 1 (as facts have corrected it: a device does not fetch from itself, the
/// hottest partitions come first). Each device in turn copies the hottest partition that fits from
/// the device that it spends the most time fetching from; others fetch from the new copy where that
/// is faster. `paths` of the loads change; `costs`, of everything that is placed, and `spare`
/// memory [devices] with them. Load i is as hot as its fetched bytes by memory.
void duplicate_for_inference(const Problem& problem, std::span<const Load> loads,
                             std::vector<FetchPath>& paths, std::vector<double>& spare,
                             DeviceCosts& costs);

/// Seconds that a device spends on communication for a load whose home may be any device with equal
/// chance, in one batch: with one copy, or with a copy on each device. With dedup_fetch off, dense
/// reduction and one bandwidth these are equations 4 and 5.
double mean_seconds(const Problem& problem, const Load& load, bool everywhere);

/// For training: loads that are faster with a copy on every device, those that gain the most a byte
/// first, within `extra` bytes over all devices. Indices, in that order.
std::vector<size_t> duplicate_for_training(const Problem& problem, std::span<const Load> loads,
                                           double extra);

}  // namespace recmill::placement
