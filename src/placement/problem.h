// SPDX-License-Identifier: Apache-2.0
// What is to be placed: tables, how often their rows are looked up, and devices to place them on.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "hotset_plan/hot_set.h"
#include "schema/access_counts.h"
#include "schema/cluster_spec.h"
#include "schema/copy_reduce.h"
#include "schema/table_spec.h"

namespace recmill::placement {

struct PlacedTable {
  TableSpec spec;
  int64_t row_bytes = 0;   // a row in memory, with its state
  bool all_pooled = true;  // every feature that looks it up pools its bags
};

struct Problem {
  std::vector<PlacedTable> tables;
  AccessCounts counts;                              // of the same tables
  std::shared_ptr<const HotSet> hot_set = nullptr;  // of the planner hot_cold, of the same tables
  ClusterSpec cluster;  // with links; memory_bytes: what rows may take of a device
  int64_t samples = 1;  // of a batch, on each device
  bool training = true;
  bool dedup_fetch = true;    // a row is fetched once a batch, however often it is looked up
  bool deterministic = true;  // rows are fetched, never pooled by their owners
  CopyReduce reduce = CopyReduce::automatic;

  int devices() const { return cluster.size(); }
  int64_t total_bytes() const;  // of one copy of every row
};

/// Whether counts, links and memory are there for these tables. Errors are bad requests that name
/// the table or the devices of a link.
Status check_problem(const Problem& problem);

/// A cluster of equal devices, a byte's time being 1 between any two and `lookup` on a device.
ClusterSpec equal_devices(int devices, int64_t memory_bytes, double lookup = 0);

/// Whether all devices, and all links between two, are alike, to a tenth.
bool is_uniform(const ClusterSpec& cluster);

/// Expected numbers for one row of a table, in one batch of one device.
struct RowUse {
  double accesses = 0;  // lookups
  double distinct = 0;  // 1 where it is looked up at all
  double touched = 0;   // the same for a batch of all devices together

  RowUse& operator+=(const RowUse& other) {
    accesses += other.accesses;
    distinct += other.distinct;
    touched += other.touched;
    return *this;
  }
  RowUse operator*(double factor) const {
    return {accesses * factor, distinct * factor, touched * factor};
  }
};

/// RowUse by count, for rows of one table: lookups are independent draws, so that a row of
/// probability p is in a batch of n lookups with probability 1 - (1 - p)^n.
class RowUses {
 public:
  RowUses(const TableCounts& counts, int64_t samples_counted, int64_t samples, int devices);

  RowUse of(int64_t count) const {
    return count < static_cast<int64_t>(small_.size()) ? small_[count] : compute(count);
  }
  /// Of the rows behind one lookup that was counted in the tail, on average.
  const RowUse& of_tail_lookup() const { return tail_; }
  /// Lookups, and bags that have one, in a batch of one device.
  double lookups() const { return lookups_; }
  double bags() const { return bags_; }

 private:
  RowUse compute(int64_t count) const;

  double total_;
  double lookups_, bags_;
  int devices_;
  std::vector<RowUse> small_;  // by count
  RowUse tail_;
};

}  // namespace recmill::placement
