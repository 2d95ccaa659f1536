// SPDX-License-Identifier: Apache-2.0
// The Rand-Em Box (FAE, section III-A-3): how many rows of a table are hot, from a sample of its
// rows.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace recmill::hotset {

inline constexpr int64_t kBoxChunks = 35, kBoxChunkRows = 1024;

struct HotRowsEstimate {
  double rows = 0;           // that are hot
  double low = 0, high = 0;  // the 99.9 % interval
  bool operator==(const HotRowsEstimate&) const = default;
};

/// Of each cutoff, how many of `rows` rows have a count at or above it. Rows are permuted by seed
/// and table, for hot rows may be neighbours; of the permuted ones 35 chunks of 1,024 are read,
/// each row once, for all cutoffs. A table of no more rows than that is counted whole, exactly.
///
/// Interval: N (y +- t sqrt((N - n) / N s^2 / n)), equations 2 to 5 with N chunks in the table, n =
/// 35 of them read, y and s^2 mean and variance of their hot rows, and t = 3.601 (34 degrees of
/// freedom); cut to what the rows read leave possible. It takes some hot rows in the sample to be
/// of use: shares from about 0.1 % on.
std::vector<HotRowsEstimate> estimate_hot_rows(int64_t rows,
                                               const std::function<int64_t(int64_t row)>& count,
                                               std::span<const int64_t> cutoffs, uint64_t seed,
                                               uint64_t table);

}  // namespace recmill::hotset
