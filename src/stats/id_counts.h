// SPDX-License-Identifier: Apache-2.0
// How often each id of a column occurs, in bounded memory.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

namespace recmill::stats {

/// Number of different values, in 16 KiB: HyperLogLog (Flajolet et al., AofA 2007) with 2^14
/// registers over a 64-bit hash; standard error 1.04 / sqrt(2^14) = 0.81 %. Small counts by linear
/// counting, as there.
class HyperLogLog {
 public:
  void add(uint64_t id);
  double estimate() const;

 private:
  static constexpr int index_bits = 14;
  std::array<uint8_t, 1 << index_bits> ranks_{};
};

/// Exact up to `limit` different ids. Beyond, the frequent ones: when the table is full, the median
/// count is taken off every id, and those that have none left are dropped (Misra and Gries, 1982,
/// in batches). What is left of a count is low by at most undercount() <= 2 lookups / limit. About
/// 60 bytes an id.
class IdCounts {
 public:
  explicit IdCounts(int64_t limit);  // >= 2

  void add(uint64_t id);
  bool exact() const { return undercount_ == 0; }
  int64_t undercount() const { return undercount_; }
  int64_t lookups() const { return lookups_; }
  int64_t cardinality() const;              // exact, or HyperLogLog's
  std::vector<int64_t> descending() const;  // counts of the ids held
  const std::unordered_map<uint64_t, int64_t>& held() const { return counts_; }

 private:
  void make_room();
  int64_t limit_;
  int64_t lookups_ = 0, undercount_ = 0;
  std::unordered_map<uint64_t, int64_t> counts_;
  HyperLogLog distinct_;
};

/// Slope of log(count) over log(rank), negated: least squares at ranks 1, 2, 3, 5, 7, ... (half
/// octaves) whose counts are at least 10. 0 with fewer than three such ranks.
double fitted_zipf(const std::vector<int64_t>& descending);

/// Ids, of `ids` different ones, that share a row with an earlier one when each takes one of `rows`
/// rows at random: ids - rows * (1 - (1 - 1 / rows)^ids).
double expected_collisions(int64_t ids, int64_t rows);

}  // namespace recmill::stats
