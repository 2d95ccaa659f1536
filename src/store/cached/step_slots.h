// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/thread_pool.h"
#include "lookahead_plan/lookahead_step.h"
#include "lookahead_plan/slot_tables.h"

namespace recmill::store {

/// In which slots the rows of one step are: small hash tables, one a table, which a core's cache
/// holds. Keeps memory from step to step.
class StepSlots {
 public:
  static constexpr int64_t kNone = -1;

  explicit StepSlots(const SlotTables& tables);

  /// Of the distinct rows of a step, ascending.
  void set(std::span<const RowInSlot> uses, ThreadPool& pool);
  /// slots[i] becomes that of a table's rows[i], or kNone; returns the last row of none, or kNone.
  int64_t find(int table, std::span<const int64_t> rows, std::span<int64_t> slots) const;

 private:
  struct Place {
    int64_t row = kNone;
    int64_t slot = kNone;
  };
  struct OfTable {
    std::vector<Place> places;  // linear probing; a power of two, of which half is empty
    int shift = 0;
    size_t home(int64_t row) const {  // Fibonacci hashing: neighbours fall far apart
      return static_cast<size_t>((static_cast<uint64_t>(row) * 0x9E3779B97F4A7C15ull) >> shift);
    }
  };
  static void set(std::span<const RowInSlot> uses, int64_t first, OfTable& table);

  const SlotTables& numbers_;
  std::vector<OfTable> tables_;
};

}  // namespace recmill::store
