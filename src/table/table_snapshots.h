// SPDX-License-Identifier: Apache-2.0
// Snapshots of tables that go on changing: what a change overwrites is copied first, as long as the
// reader has not been there.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "device/thread_pool.h"
#include "table/embedding_table.h"
#include "table/row_block.h"

namespace recmill::table {

/// Bytes that a copy of `columns` of a row takes, its place and what containers hold back included.
int64_t kept_bytes_of_row(const TableSpec& spec, int64_t columns);

/// All calls are made on one thread, and snapshots read on any.
class TableSnapshots {
 public:
  /// While one lives, rows may change and no reader looks at them.
  using Change = std::unique_lock<std::mutex>;

  static constexpr int64_t kFirst = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kLast = std::numeric_limits<int64_t>::max();

  /// `tables` outlive this and all snapshots.
  explicit TableSnapshots(const std::vector<EmbeddingTable>& tables);
  ~TableSnapshots();

  /// The rows that the tables' shares own, as after `step`: changes of later steps do not show in
  /// it. A change waits for its reader where more than `kept_bytes` are kept.
  std::unique_ptr<RowSnapshot> take(int64_t kept_bytes, int64_t step = kFirst);

  /// Whether one is there that has neither been read to its end nor destroyed.
  bool is_being_read() const;

  /// Whether before() has a use for rows.
  bool wanted() const { return !live_.empty(); }
  /// Before rows that this share holds change by `step`: `rows` [tables], empty unless wanted().
  Change before(std::span<const std::span<const int64_t>> rows, ThreadPool& pool,
                int64_t step = kLast);

 private:
  struct Readers;
  class State;
  class Snapshot;

  const std::vector<EmbeddingTable>& tables_;
  const std::shared_ptr<Readers> readers_;
  std::vector<std::shared_ptr<State>> live_;  // what has to be kept for them; some may have ended
};

}  // namespace recmill::table
