// SPDX-License-Identifier: Apache-2.0
// A checkpoint holds finite values alone: one of others could only train on to nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "checkpoint/format.h"
#include "schema/column_range.h"

namespace recmill::checkpoint {

/// Some rows of an entry: first_row, first_row + 1, ... or those listed.
struct RowBytes {
  int64_t first_row = 0;
  std::span<const int64_t> listed;
  std::span<const std::byte> bytes;
  ColumnRange columns = {};  // those that `bytes` has of each row; none: all of them
};

/// Fails on a float among them that is an infinity or a NaN, naming the first one's table and row,
/// or layer.
Status check_finite(const EntrySpec& entry, const RowBytes& rows);

}  // namespace recmill::checkpoint
