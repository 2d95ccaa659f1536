// SPDX-License-Identifier: Apache-2.0
// What rows placed in some way cost each device: memory, lookups and communication (OPER, section
// 3.2, equations 1 to 3, with L[i][j] for what device i fetches from device j), and in training
// what their gradients cost. Whatever is placed, one row or a million that go together, is added
// here.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "placement/problem.h"
#include "placement_plan/placement_plan.h"

namespace recmill::placement {

/// Rows that are placed together: bytes in one batch of one device, expected.
struct Load {
  double memory = 0;      // of one copy
  double looked_up = 0;   // rows read for one device that fetches them
  double fetched = 0;     // sent to it
  double requested = 0;   // ids that it sends to ask for them
  double summed = 0;      // of gradients that it sends home, their ids included
  double aggregated = 0;  // the same, each row once
  double reduced = 0;     // of gradients in a reduction over all copies, to one of them

  Load& operator+=(const Load& other);
  Load operator*(double factor) const;
};

/// What `rows` rows of a table are, whose use is `use` altogether.
Load load_of(const Problem& problem, const PlacedTable& table, double rows, const RowUse& use);

/// Largest, smallest and mean over devices or pairs; the degree of balance is smallest / largest
/// (OPER, table 3), 1 where all are 0.
struct Balance {
  double largest = 0, smallest = 0, mean = 0, variance = 0;
  double degree() const { return largest > 0 ? smallest / largest : 1.0; }
};
Balance balance_of(std::span<const double> values);

class DeviceCosts {
 public:
  /// What moves between devices, one after the other.
  enum Phase { request, fetch, sum, reduce };
  static constexpr int kPhases = 4;

  /// `problem` outlives this.
  explicit DeviceCosts(const Problem& problem);

  void add(const Load& load, const FetchPath& path, double sign = 1);
  void remove(const Load& load, const FetchPath& path) { add(load, path, -1); }
  /// After all phases: rounds of messages, each of which needs what the one before has brought.
  void add_to_round(size_t round, int to, int from, double bytes);

  int devices() const { return devices_; }
  double memory(int device) const { return memory_[device]; }        // bytes
  double looked_up(int device) const { return looked_up_[device]; }  // bytes, for all devices
  /// Bytes that `to` gets from `from`.
  double moved(Phase phase, int to, int from) const {
    return moved_[phase][static_cast<size_t>(to) * devices_ + from];
  }
  /// The same of all rounds.
  double moved_in_rounds(int to, int from) const;
  /// Seconds that a device's ports are busy in a phase: it sends and receives at the same time.
  double seconds(Phase phase, int device) const;
  /// Of all rounds, for every device: each takes as long as its slowest device.
  double rounds_seconds() const;
  double lookup_seconds(int device) const;
  /// Lookups, all phases and rounds.
  double seconds(int device) const;
  double largest_seconds() const;
  /// Seconds of the fetch from one device to another, C[to][from] of equation 3.
  double fetch_seconds(int to, int from) const;

 private:
  using Moved = std::vector<double>;  // [devices][devices], to, from

  double port_seconds(const Moved& moved, int device) const;
  double& pair(Phase phase, int to, int from) {
    return moved_[phase][static_cast<size_t>(to) * devices_ + from];
  }
  void add_gradients(const Load& load, const FetchPath& path);

  const Problem* problem_;
  int devices_;
  int phases_;                              // in use: two without training
  std::vector<double> memory_, looked_up_;  // [devices]
  std::array<Moved, kPhases> moved_;
  std::vector<Moved> rounds_;
};

}  // namespace recmill::placement
