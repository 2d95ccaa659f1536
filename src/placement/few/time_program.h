// SPDX-License-Identifier: Apache-2.0
// The slowest device's time as a linear program: what placements are columns of it, linear and
// integer ones alike.
#pragma once

#include <cstdint>
#include <vector>

#include "placement/device_costs.h"
#include "solve/mixed_integer_program.h"

namespace recmill::placement {

/// Minimises the slowest device's seconds in units of `unit` (near its optimum, so that the
/// solver's tolerances mean little). Message times are left out: they do not depend on what is
/// placed where.
class TimeProgram {
 public:
  TimeProgram(const Problem& problem, double unit);

  solve::MixedIntegerProgram& program() { return program_; }
  /// What one unit of `column` costs the devices.
  void add(int64_t column, const DeviceCosts& costs);
  /// That `to` fetches `load` from `from`, where a copy is; inference.
  void add_fetch(int64_t column, const Load& load, int to, int from);
  /// To be called once, after all columns: rows that bound the time from below. `placed` costs the
  /// devices whatever the columns are.
  void finish(const DeviceCosts& placed);

  int64_t time() const { return time_; }  // column
  double unit() const { return unit_; }   // seconds

 private:
  struct Port {
    std::vector<solve::Entry> entries;
    double fixed = 0;
  };
  void add_seconds(Port& port, int64_t column, double seconds);
  void add_moved(int64_t column, DeviceCosts::Phase phase, int to, int from, double bytes);
  size_t at(int phase, int device) const {
    return static_cast<size_t>(phase) * problem_.devices() + device;
  }

  const Problem& problem_;
  const double unit_;
  solve::MixedIntegerProgram program_;
  int64_t time_;
  std::vector<Port> sent_, received_;  // [phases][devices]
  std::vector<Port> lookups_;          // [devices]
};

}  // namespace recmill::placement
