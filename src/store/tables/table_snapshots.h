// SPDX-License-Identifier: Apache-2.0
// Snapshots of tables that go on changing: what a change overwrites is copied first, as long as the
// reader has not been there.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "device/thread_pool.h"
#include "store/embedding_store.h"
#include "table/embedding_table.h"

namespace recmill::store {

/// Bytes that a copy of `columns` of a row takes, its place and what containers hold back included.
int64_t kept_bytes_of_row(const TableSpec& spec, int64_t columns);

class TableSnapshots {
 public:
  /// While one lives, rows may change and no reader looks at them.
  using Change = std::unique_lock<std::mutex>;

  /// `tables` outlive this and all snapshots.
  explicit TableSnapshots(const std::vector<table::EmbeddingTable>& tables);
  ~TableSnapshots();

  /// EmbeddingStore::snapshot(). One at a time: another before this has been read or destroyed is a
  /// CHECK.
  std::unique_ptr<RowSnapshot> take(int64_t kept_bytes);

  /// Whether one is there that has neither been read to its end nor destroyed.
  bool is_being_read() const;

  /// Whether before() has a use for rows.
  bool wanted() const { return latest_ != nullptr; }
  /// Before rows that this share holds change: `rows` [tables], empty unless wanted(). Waits while
  /// more than kept_bytes are kept.
  Change before(std::span<const std::span<const int64_t>> rows, ThreadPool& pool);

 private:
  class State;
  class Snapshot;

  const std::vector<table::EmbeddingTable>& tables_;
  std::shared_ptr<State> latest_;  // null: nothing has to be kept
};

}  // namespace recmill::store
