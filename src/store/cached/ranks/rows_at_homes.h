// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "store/cached/ranks/home_ranks.h"
#include "store/cached/ranks/round_thread.h"
#include "store/cached/row_records.h"
#include "store/cached/slots.h"
#include "table/row_record.h"

namespace recmill::store {

/// Rows that no plan moves go to their homes, and come from them. Collective, within
/// RoundThread::call().
class RowsAtHomes {
 public:
  /// All outlive it. `records` [tables].
  /// `is_shared`: the home.
  RowsAtHomes(const HomeRanks& homes, std::span<const table::RowRecord> records, bool is_shared,
              RoundThread& rounds)
      : homes_(homes), records_(records), is_shared_(is_shared), rounds_(rounds) {}

  /// Sends this rank's rows home, where they are then as they are in its slots. A row comes from
  /// one rank.
  Status put(std::span<const RowInSlot> rows, const Slots& slots);
  /// Fills in the records of `rows`, ascending.
  Status fetch(std::span<const RowInSlot> rows, RowRecords& records);

 private:
  using Messages = std::vector<std::vector<std::byte>>;  // [ranks]
  size_t bytes_of(int64_t row) const {
    return static_cast<size_t>(records_[homes_.tables().table_of(row)].bytes());
  }
  Result<std::vector<std::vector<int64_t>>> exchange_rows(
      std::span<const std::vector<int64_t>> rows);
  Result<Received> exchange(const Messages& messages);

  const HomeRanks& homes_;
  const std::span<const table::RowRecord> records_;
  const bool is_shared_;
  RoundThread& rounds_;
};

}  // namespace recmill::store
