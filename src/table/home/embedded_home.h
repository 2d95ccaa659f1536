// SPDX-License-Identifier: Apache-2.0
// The home in this process, over EmbeddingTable.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/thread_pool.h"
#include "table/embedding_table.h"
#include "table/home/local_home.h"
#include "table/row_record.h"
#include "table/table_snapshots.h"

namespace recmill::table {

/// The rows that the tables' shares own; an error names the owner of another one.
class EmbeddedRows final : public HomeRows {
 public:
  EmbeddedRows(std::vector<EmbeddingTable>& tables, ThreadPool& pool);

  Status check(int table, std::span<const int64_t> rows, size_t record_bytes) const override;
  Status read(std::span<const FetchedRows> rows) override;
  Status replace(std::span<const PutRows> rows, int64_t step) override;
  Result<std::shared_ptr<RowSnapshot>> image(int64_t step) override;

 private:
  std::vector<EmbeddingTable>& tables_;
  ThreadPool& pool_;
  std::vector<RowRecord> records_;  // [tables]
  TableSnapshots snapshots_;
};

class EmbeddedHome {
 public:
  /// `tables` and `pool` outlive it. As LocalHome.
  EmbeddedHome(std::vector<EmbeddingTable>& tables, int writers, ThreadPool& pool,
               int64_t mark = RowHome::kNoFence)
      : rows_(tables, pool), home_(rows_, writers, mark) {}

  RowHome& writer(int number) { return home_.writer(number); }

 private:
  EmbeddedRows rows_;
  LocalHome home_;
};

/// A home for one writer that has tables of its own.
std::shared_ptr<RowHome> make_embedded_home(std::vector<EmbeddingTable> tables, ThreadPool& pool);

}  // namespace recmill::table
