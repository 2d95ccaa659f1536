// SPDX-License-Identifier: Apache-2.0
// Which tables are stored in the memory of a GPU, where there is no room for all.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/gpu/gpu.h"

namespace recmill::store {

struct TableTraffic {
  int64_t bytes = 0;          // of all rows and their state
  double bytes_a_sample = 0;  // of the rows that a sample looks up
};

/// [tables] Pure: of all choices whose tables in GpuMemory::device take at most `free` bytes, one
/// that leaves the least traffic to those in GpuMemory::host; of equal ones that which takes tables
/// by their traffic for each byte, those of the same by number. Where very many choices are nearly
/// alike, so that the search is cut off, the best one of those seen, which are never worse than
/// that.
std::vector<GpuMemory> fit_tables(std::span<const TableTraffic> tables, int64_t free);

}  // namespace recmill::store
