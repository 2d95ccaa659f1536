// SPDX-License-Identifier: Apache-2.0
// The order in which files of row groups are read: decided here, obeyed by the columnar reader.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reader/row_order.h"

namespace recmill::reader {

/// Consecutive rows of one row group: what is decoded at once.
struct RowSlice {
  int64_t group = 0;      // index over the row groups of all files, in the order of the data
  int64_t begin = 0;      // first row in the row group
  int64_t rows = 0;       // decoded
  int64_t kept = 0;       // of these, handed out
  int64_t first_row = 0;  // number of its first row in the data
  int64_t position = 0;   // of its first kept row in the order
  bool operator==(const RowSlice&) const = default;
};

/// The slices of a data set in its own order, all rows kept. A row group of more than `window` rows
/// is cut into slices of `window`, so that memory is bounded whoever wrote the file.
std::vector<RowSlice> cut_row_groups(std::span<const int64_t> group_rows, int64_t window);

/// The slices as an epoch takes them: row groups in the order of order_of_epoch(), the slices of
/// one following each other, for it is decoded front to back.
std::vector<RowSlice> slices_of_epoch(const std::vector<RowSlice>& data, ShuffleKind kind,
                                      uint64_t seed, int64_t epoch);

}  // namespace recmill::reader
