// SPDX-License-Identifier: Apache-2.0
// The seeded order of rows: pure functions of (bounds, kind, seed, epoch).
#pragma once

#include <cstdint>
#include <vector>

#include "reader/data_options.h"

namespace recmill::reader {

/// Rows [bounds[w], bounds[w + 1]) of the data are window w. An epoch takes the windows in a
/// permuted order, slot after slot, and the rows of each in a permuted order.
struct EpochOrder {
  std::vector<int64_t> windows;  // [slots], window that is in each slot
  std::vector<int64_t> starts;   // [slots + 1], position of a slot's first row

  int64_t slots() const { return static_cast<int64_t>(windows.size()); }
  int64_t rows() const { return starts.back(); }
  /// The slot that holds `position`, in [0, rows()).
  int64_t slot_of(int64_t position) const;
};

/// Bounds of windows of `window` rows; the last may be shorter.
std::vector<int64_t> equal_windows(int64_t rows, int64_t window);

EpochOrder order_of_epoch(const std::vector<int64_t>& bounds, ShuffleKind kind, uint64_t seed,
                          int64_t epoch);

/// The rows of window `window`, `size` of them, as an epoch takes them (Fisher and Yates).
std::vector<uint32_t> order_in_window(int64_t size, ShuffleKind kind, uint64_t seed, int64_t epoch,
                                      int64_t window);

}  // namespace recmill::reader
