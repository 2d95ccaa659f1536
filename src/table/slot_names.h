// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "schema/table_spec.h"
#include "table/optimizers/row_step.h"

namespace recmill::table {

/// Which row of which table is in each slot of a table that holds rows of several: what an update
/// needs of them, beside what they all share, is their random numbers. Slots that nobody updates
/// meanwhile may be named anew on another thread.
class SlotNames {
 public:
  /// `tables`: those that slots are named after, with their seed.
  SlotNames(std::span<const TableSpec> tables, uint64_t seed, int64_t slots);

  void name(int64_t slot, int table, int64_t row) { names_[slot] = {row, table}; }
  int table(int64_t slot) const { return names_[slot].table; }
  int64_t row(int64_t slot) const { return names_[slot].row; }

  /// Of each table that slots are named after, those of an iteration's stochastic rounding.
  std::vector<Random> roundings(const RowStep& step) const;

 private:
  struct Name {
    int64_t row = 0;
    int32_t table = 0;
  };
  const uint64_t seed_;
  std::vector<uint64_t> table_keys_;  // [tables]
  std::vector<Name> names_;           // [slots]
};

}  // namespace recmill::table
