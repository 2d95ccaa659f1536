// SPDX-License-Identifier: Apache-2.0
#include "stats/hot_threshold.h"

#include <algorithm>
#include <bit>

#include "stats/counts_codec.h"

namespace recmill::stats {
namespace {

// What the file's head takes besides names, at most, and what a table does there.
constexpr int64_t kHeadBytes = 512, kTableBytes = 320;
constexpr int64_t kEscaped = 6;  // bytes of a character in JSON

/// At most the bytes of a table whose rows of `threshold` lookups are hot.
int64_t most_bytes(const CountHistogram& table, int64_t threshold) {
  int64_t hot = 0, hot_lookups = 0, bits = 0;
  int64_t tail_counts = table.tail_counts + 1, tail_length = table.tail_length;
  for (const auto& [count, rows] : table.touched) {
    if (count < threshold) {
      ++tail_counts;
      tail_length = std::max(tail_length, count + 1);
      continue;
    }
    hot += rows;
    hot_lookups += rows * count;
    bits += rows * count_bits(count - threshold + 1);
  }
  const int64_t tail = table.lookups - hot_lookups;
  return kTableBytes + kEscaped * std::ssize(table.table) + row_list_bytes(hot, table.rows) +
         bits / 8 + 8 + most_sparse_bytes(std::min(table.ranges, tail), table.ranges, tail) +
         most_sparse_bytes(tail_counts, tail_length, table.rows);
}

}  // namespace

int64_t default_file_bytes(int64_t rows) {
  constexpr double kFewRows = 242.5e6, kFewBytes = 64e6, kManyRows = 2.5e9, kManyBytes = 256e6;
  constexpr double kSlope = (kManyBytes - kFewBytes) / (kManyRows - kFewRows);
  return static_cast<int64_t>(kFewBytes + (static_cast<double>(rows) - kFewRows) * kSlope);
}

int64_t range_rows_of(int64_t rows, int64_t bytes) {
  constexpr int64_t kMostRanges = int64_t{1} << 17, kRangeBytes = 4;
  const int64_t ranges = std::clamp<int64_t>(bytes / 8 / kRangeBytes, 1, kMostRanges);
  return static_cast<int64_t>(
      std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, (rows + ranges - 1) / ranges))));
}

int64_t hot_threshold(std::span<const CountHistogram> tables, int64_t bytes) {
  const auto fits = [&](int64_t threshold) {
    int64_t all = kHeadBytes;
    for (const CountHistogram& table : tables) all += most_bytes(table, threshold);
    return all <= bytes;
  };
  int64_t least = 1, most = kAlwaysHot;
  while (least < most) {
    const int64_t middle = (least + most) / 2;
    if (fits(middle)) {
      most = middle;
    } else {
      least = middle + 1;
    }
  }
  return least;
}

}  // namespace recmill::stats
