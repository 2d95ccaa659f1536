// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace recmill {

/// Rows by what they are moved for. Those between a row's home and a rank count wherever these two
/// are; the others only where they cross ranks.
struct MovedRows {
  int64_t fetched = 0;       // from homes into slots
  int64_t written_back = 0;  // from slots to homes
  int64_t gradients = 0;     // sums of a rank's lookups, to the rank that updates the row
  int64_t weights = 0;       // to ranks that look the row up
  int64_t handed_over = 0;   // with their state, to another owner

  int64_t total() const { return fetched + written_back + gradients + weights + handed_over; }
  bool operator==(const MovedRows&) const = default;
};

}  // namespace recmill
