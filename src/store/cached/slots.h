// SPDX-License-Identifier: Apache-2.0
// The slots of a rank's cache in the memory of the host: rows of an inner store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "store/cached/slot_states.h"
#include "store/sharded/host_rows.h"
#include "store/tables/rank_tables.h"
#include "table/embedding_table.h"
#include "table/row_record.h"
#include "table/table_share.h"

namespace recmill::store {

class Slots : public SlotStates {
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
  /// names. `copied`: as SlotStates.
  Slots(const ModelSpec& model, const SlotTables& tables, uint64_t seed, RankTables& inner,
        std::vector<int64_t> copied = {});

  /// `updated`: since it was fetched.
  void fill(const RowInSlot& row, const std::byte* record, bool updated = false);
  /// Of a row that is there; `updated`: not at its home.
  void write(const RowInSlot& row, const std::byte* record, bool updated = false);
  void copy_out(const RowInSlot& row, std::byte* record) const;
  /// RowRecord::weight_bytes() of it.
  void copy_weights(const RowInSlot& row, std::byte* weights) const;

 private:
  /// The memory of a slot table.
  const kernels::RowStorage& storage(int slot_table) const {
    return inner_.tables[tables_.first_table(slot_table)].rows();
  }

  RankTables& inner_;
  std::vector<table::RowRecord> records_;  // [slot tables]
};

}  // namespace recmill::store
