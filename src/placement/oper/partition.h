// SPDX-License-Identifier: Apache-2.0
// Rows that are looked up alike, cut into partitions that are placed whole: OPER's access- and
// memory-aware adaptive partitioning (section 4.1).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "placement/device_costs.h"
#include "placement/problem.h"

namespace recmill::placement {

/// A table's hot rows, those of the most lookups first, ties by row: indices into
/// TableCounts::hot_rows.
using HotOrder = std::vector<int64_t>;
std::vector<HotOrder> hot_orders(const AccessCounts& counts);

struct Thresholds {
  /// Shares of all bytes that are fetched, and of all memory, that a partition has at most, unless
  /// it is a single row.
  double access = 0.001;
  double memory = 0.001;
  /// Bytes of a partition of listed rows, at most; 0: as memory says.
  double listed_bytes = 0;
  /// Rows are listed as long as they are denser in accesses than a partition at both bounds; else
  /// as long as there are hot ones.
  bool list_dense_alone = true;
  /// Share of all rows that may be listed one by one, at most: the densest ones.
  double listed_share = 0.05;
};

struct Partition {
  int table = 0;
  /// Listed rows: indices into TableCounts::hot_rows. Empty: the rows [begin, end) that nobody
  /// lists.
  std::span<const int64_t> listed;
  int64_t begin = 0, end = 0;
  Load load;

  /// Bounded by accesses rather than by memory.
  bool access_bounded() const { return !listed.empty(); }
};

/// Partitions of all rows but those that are `taken`: first the access-bounded ones, whose rows are
/// listed, each table's in descending order of lookups, then ranges of the others.
class Partitioning {
 public:
  Partitioning(Partitioning&&) = default;
  Partitioning& operator=(Partitioning&&) = default;

  /// `orders` [tables]: of the hot rows that are not taken.
  /// `taken` [tables][hot rows]: placed already; empty: none.
  Partitioning(const Problem& problem, const std::vector<HotOrder>& orders,
               const Thresholds& thresholds, const std::vector<std::vector<bool>>& taken = {});

  /// They point into this.
  const std::vector<Partition>& partitions() const { return partitions_; }
  /// Shares of the access-bounded partitions.
  double access_bounded_share() const { return listed_.fetched / std::max(all_.fetched, 1e-300); }
  double access_bounded_memory() const { return listed_.memory / std::max(all_.memory, 1e-300); }
  const Load& all() const { return all_; }
  const Load& access_bounded() const { return listed_; }
  /// Of the one row with the most bytes fetched.
  double hottest_row() const { return hottest_row_; }

 private:
  struct TableRows;  // one table's rows that are not taken
  double least_density(const Problem& problem, const std::vector<TableRows>& tables,
                       const Thresholds& thresholds) const;
  void list_rows(const Problem& problem, TableRows& rows, double density,
                 const Thresholds& thresholds);
  void deal(const TableRows& rows, const std::vector<Load>& loads, int parts);
  void cut_ranges(const Problem& problem, const TableRows& rows, const Thresholds& thresholds);

  std::vector<HotOrder> listed_rows_;  // [tables], what partitions point into
  std::vector<Partition> partitions_;
  Load all_, listed_;
  double hottest_row_ = 0;
};

}  // namespace recmill::placement
