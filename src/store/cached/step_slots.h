// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lookahead_plan/lookahead_step.h"
#include "lookahead_plan/slot_tables.h"
#include "schema/table_spec.h"

namespace recmill::store {

/// In which slots the rows of one step are. Keeps memory from step to step.
class StepSlots {
 public:
  static constexpr int64_t kNone = -1;

  /// `model` has the tables.
  StepSlots(const ModelSpec& model, const SlotTables& tables);

  /// Sets those of a table, of the distinct rows of a step, ascending, which stay where they are
  /// until the next call. Tables may be set, and looked into, beside each other.
  void set(int table, std::span<const RowInSlot> uses);
  /// slots[i] becomes that of a table's rows[i], or kNone; returns the last row of none, or kNone.
  /// Every row is of the table.
  int64_t find(int table, std::span<const int64_t> rows, std::span<int64_t> slots) const;

 private:
  /// Places say where in `uses` a row may be, and `uses` whether it is. Of a table not far larger
  /// than what is used of it each row has a place, where others may have left something. Else it is
  /// a hash table, by linear probing, of which three quarters are empty.
  struct OfTable {
    int64_t rows = 0;   // of the table
    int64_t first = 0;  // the number of its first row
    std::span<const RowInSlot> uses;
    bool hashed = false;
    std::vector<uint32_t> places;
    std::vector<uint32_t> hash;
    int shift = 0;

    void set(std::span<const RowInSlot> own);
    template <bool kHashed>
    int64_t find(int64_t row) const;
    size_t home(int64_t row) const {  // Fibonacci hashing: neighbours fall far apart
      return static_cast<size_t>((static_cast<uint64_t>(row) * 0x9E3779B97F4A7C15ull) >> shift);
    }
  };

  std::vector<OfTable> tables_;
};

}  // namespace recmill::store
