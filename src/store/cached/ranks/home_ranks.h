// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lookahead_plan/slot_tables.h"
#include "schema/table_spec.h"
#include "table/row_share.h"
#include "table/table_share.h"

namespace recmill::store {

/// The rank that a row of a cache has its home at, and that decides for it: the owner by hash, as
/// without a cache.
class HomeRanks {
 public:
  HomeRanks(const ModelSpec& model, int ranks) : tables_(model), ranks_(ranks) {
    for (const TableSpec& table : model.tables) shares_.emplace_back(table.rows, 0, ranks);
  }

  int ranks() const { return ranks_; }
  /// Of a row as `tables()` numbers it.
  int32_t of(int64_t row) const {
    if (ranks_ == 1) return 0;
    const int table = tables_.table_of(row);
    return shares_[table].owner(row - tables_.begin(table));
  }
  const SlotTables& tables() const { return tables_; }
  /// What is stored at a rank [tables].
  std::vector<table::TableShare> shares(int rank) const {
    std::vector<table::TableShare> shares;
    for (const table::RowShare& share : shares_)
      shares.emplace_back(table::RowShare(share.rows(), rank, ranks_));
    return shares;
  }

 private:
  const SlotTables tables_;
  const int ranks_;
  std::vector<table::RowShare> shares_;  // [tables]
};

}  // namespace recmill::store
