// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "lookahead_plan/lookahead_step.h"
#include "lookahead_plan/slot_tables.h"
#include "schema/table_spec.h"
#include "table/slot_names.h"

namespace recmill::store {

/// Which row each slot of a rank's cache has, and which were updated; rows themselves are
/// elsewhere.
///
/// Each slot is used by one side at a time, by plan; so nothing here is locked. A plan by which a
/// full slot were filled, or an empty one used, is a bug, and CHECKed.
class SlotStates {
 public:
  /// Bytes that a slot takes here.
  static constexpr int64_t kBytesOfSlot = 2 * sizeof(int64_t) + 1;

  /// `slots` [slot tables]: of `rank`, of which those that all ranks have come first: `copied`
  /// [slot tables], or none.
  SlotStates(const ModelSpec& model, const SlotTables& tables, uint64_t seed,
             std::span<const int64_t> slots, std::vector<int64_t> copied = {}, int32_t rank = 0);

  int slot_table_of(const RowInSlot& row) const { return tables_.slot_table_of_row(row.row); }
  const table::SlotNames& names(int slot_table) const { return names_[slot_table]; }

  /// The slot, which was free, has the row.
  void fill(const RowInSlot& row);
  /// The slot is free.
  void empty(const RowInSlot& row);

  /// Of a row that is there: what is at its home is older.
  void note_updated(const RowInSlot& row);
  /// Rows that an update of a step has changed: `uses` without those of frozen tables.
  void note_updated(std::span<const RowInSlot> uses);
  /// Since it was filled.
  bool is_updated(const RowInSlot& row) const {
    return (states_[slot_table_of(row)][place(row)] & kUpdated) != 0;
  }
  /// Rows, ascending, that were updated since they were filled or last asked for here.
  std::vector<RowInSlot> take_changed();
  /// Of rows [first, end) those that are in slots, ascending.
  std::vector<RowInSlot> in_slots(int64_t first, int64_t end) const;

 protected:
  void check_full(const RowInSlot& row) const {
    RECMILL_CHECK((states_[slot_table_of(row)][place(row)] & kFull) != 0, tables_.name_of(row.row));
  }
  /// Among those of this rank.
  int64_t place(const RowInSlot& row) const {
    return row.holder == kEverywhere ? row.slot : copied_[slot_table_of(row)] + row.slot;
  }

  const SlotTables& tables_;

 private:
  static constexpr uint8_t kFull = 1, kUpdated = 2, kChanged = 4;
  template <typename Wanted>
  std::vector<RowInSlot> find(const Wanted& wanted) const;

  std::vector<table::SlotNames> names_;       // [slot tables]
  std::vector<std::vector<uint8_t>> states_;  // [slot tables][slots]
  std::vector<bool> frozen_;                  // [slot tables]
  std::vector<int64_t> copied_;               // [slot tables]
  const int32_t rank_;
  std::atomic<bool> any_changed_{false};
};

}  // namespace recmill::store
