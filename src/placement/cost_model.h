// SPDX-License-Identifier: Apache-2.0
// The one judge of plans, whoever made them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "placement/device_costs.h"
#include "placement/problem.h"
#include "placement_plan/placement_plan.h"

namespace recmill::placement {

struct DeviceRating {
  double memory = 0;          // bytes
  double memory_limit = 0;    // bytes
  double looked_up = 0;       // bytes a batch, for all devices
  double received = 0;        // bytes a batch
  double sent = 0;            // bytes a batch
  double fetch_seconds = 0;   // asking for rows and sending them
  double reduce_seconds = 0;  // of gradients; training
  double lookup_seconds = 0;
  double seconds() const { return lookup_seconds + fetch_seconds + reduce_seconds; }
};

/// Of a batch, expected. "Communication" is the fetch of rows, as in OPER, in seconds of the links
/// that it takes: of a device its ports' time, of a pair what one fetches from the other.
struct Rating {
  std::vector<DeviceRating> devices;
  std::vector<double> fetched;  // [devices][devices] bytes of rows, to, from
  Balance memory;               // bytes, relative to the device's limit where limits differ
  Balance lookups;              // bytes looked up on a device
  Balance communication;        // seconds of a device
  Balance pair_bytes;           // bytes between two different devices, one way
  Balance pair_communication;   // seconds of a pair
  double seconds = 0;           // of the slowest device
  int64_t copied_rows = 0;      // with more than one copy
  int64_t extra_copies = 0;     // beyond the first of each row
  double extra_bytes = 0;       // that these take

  /// Empty: it fits. Else the device that is short of the most, and by how much.
  std::string does_not_fit() const;
};

/// `plan` is one for the problem's tables and devices (check_plan), `problem` as check_problem()
/// wants it. Time: linear in hot and listed rows and ranges.
Rating rate(const Problem& problem, const PlacementPlan& plan);

/// Of all rows of a table together.
RowUse use_of_all(const TableCounts& counts, const RowUses& uses);

/// Costs of the devices alone, by the same sums: of all tables, or of one.
DeviceCosts costs_of(const Problem& problem, const PlacementPlan& plan);
DeviceCosts costs_of_table(const Problem& problem, const PlacementPlan& plan, size_t table);

}  // namespace recmill::placement
