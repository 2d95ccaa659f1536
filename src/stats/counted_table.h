// SPDX-License-Identifier: Apache-2.0
// The counters of a table, as they are cut to TableCounts: in chunks of rows, beside each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/thread_pool.h"
#include "schema/access_counts.h"

namespace recmill::stats {

/// A row and its lookups.
struct RowCount {
  int64_t row = 0, count = 0;
};

/// Counts of all rows of a table: those from 256 on are listed, of the others the counter says it.
struct CountedTable {
  std::span<const uint8_t> counters;  // [rows]; of a row that is listed it says nothing
  std::vector<RowCount> listed;       // rows ascending
};

/// Cuts `tables` to `counts`, which has all but lists: hot rows, ranges and the tail, so that the
/// file has at most `bytes`.
void fill_counts(std::span<const CountedTable> tables, int64_t bytes, AccessCounts& counts,
                 ThreadPool& pool);

}  // namespace recmill::stats
