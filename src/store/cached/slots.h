// SPDX-License-Identifier: Apache-2.0
// The slots of a rank's cache: rows of an inner store, and which row each has.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "lookahead_plan/lookahead_step.h"
#include "lookahead_plan/slot_tables.h"
#include "schema/table_spec.h"
#include "store/sharded/host_rows.h"
#include "store/tables/rank_tables.h"
#include "table/embedding_table.h"
#include "table/home/row_home.h"
#include "table/row_record.h"
#include "table/slot_names.h"
#include "table/table_share.h"

namespace recmill::store {

/// Some rows, and room for their records, as a home takes them.
class RowRecords {
 public:
  /// `rows` ascend. `records` [tables] are the shapes.
  RowRecords(const SlotTables& tables, std::span<const table::RowRecord> records,
             std::span<const RowInSlot> rows);

  std::byte* record(size_t i) { return bytes_.data() + places_[i]; }
  std::vector<table::FetchedRows> to_fetch();
  std::vector<table::PutRows> to_put() const;

 private:
  struct OfTable {
    int table = 0;
    size_t first = 0, count = 0;  // of rows_
    size_t begin = 0, bytes = 0;  // of bytes_
  };
  std::vector<int64_t> rows_;  // of their tables
  std::vector<size_t> places_;
  std::vector<OfTable> tables_;
  std::vector<std::byte> bytes_;
};

/// Each slot is used by one side at a time, by plan; so nothing here is locked. A plan by which a
/// full slot were filled, or an empty one used, is a bug, and CHECKed.
class Slots {
 public:
  /// What `model` becomes where its rows are in slots: each table has the slots of its slot table
  /// for rows. `slots` [slot tables].
  static ModelSpec inner_model(const ModelSpec& model, const SlotTables& tables,
                               std::span<const int64_t> slots);
  /// Tables of inner_model(), without rows until allocate(). `shares` [tables].
  static std::vector<table::EmbeddingTable> inner_tables(const ModelSpec& inner, uint64_t seed,
                                                         std::span<const table::TableShare> shares);
  /// Tables of one slot table are in the memory of its first one: that table [tables].
  static std::vector<int> memory_of(const SlotTables& tables);
  /// With `host`, which is of the same shares and memory_of(), collective.
  static Status allocate(const SlotTables& tables, std::span<table::EmbeddingTable> inner,
                         HostRows* host = nullptr);

  /// `inner` has this rank's rows of inner_model() in inner_tables(), and outlives this; slots get
  /// names. Those that all ranks have come first: `copied` [slot tables], or none.
  Slots(const ModelSpec& model, const SlotTables& tables, uint64_t seed, RankTables& inner,
        std::vector<int64_t> copied = {});

  int slot_table_of(const RowInSlot& row) const { return tables_.slot_table_of_row(row.row); }
  /// `updated`: since it was fetched.
  void fill(const RowInSlot& row, const std::byte* record, bool updated = false);
  /// Of a row that is there; `updated`: not at its home.
  void write(const RowInSlot& row, const std::byte* record, bool updated = false);
  void copy_out(const RowInSlot& row, std::byte* record) const;
  /// The slot is free.
  void empty(const RowInSlot& row);

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

 private:
  static constexpr uint8_t kFull = 1, kUpdated = 2, kChanged = 4;
  void check_full(const RowInSlot& row) const {
    RECMILL_CHECK((states_[slot_table_of(row)][place(row)] & kFull) != 0, tables_.name_of(row.row));
  }
  template <typename Wanted>
  std::vector<RowInSlot> find(const Wanted& wanted) const;
  /// Among those of this rank's table.
  int64_t place(const RowInSlot& row) const {
    return row.holder == kEverywhere ? row.slot : copied_[slot_table_of(row)] + row.slot;
  }

  /// The memory of a slot table.
  const kernels::RowStorage& storage(int slot_table) const {
    return inner_.tables[tables_.first_table(slot_table)].rows();
  }

  const SlotTables& tables_;
  RankTables& inner_;
  std::vector<table::RowRecord> records_;     // [slot tables]
  std::vector<table::SlotNames> names_;       // [slot tables]
  std::vector<std::vector<uint8_t>> states_;  // [slot tables][slots]
  std::vector<bool> frozen_;                  // [slot tables]
  std::vector<int64_t> copied_;               // [slot tables]
  const int32_t rank_;
  std::atomic<bool> any_changed_{false};
};

}  // namespace recmill::store
