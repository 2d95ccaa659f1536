// SPDX-License-Identifier: Apache-2.0
// The home in this process, over EmbeddingTable.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "device/thread_pool.h"
#include "table/embedding_table.h"
#include "table/home/row_home.h"
#include "table/row_record.h"
#include "table/table_snapshots.h"

namespace recmill::table {

/// Writers may be on different threads. A put is answered at once; a fetch by the put that brings
/// the last mark to its fence, or at once. It has the rows that the tables' shares own, and an
/// error names the owner of another one.
class EmbeddedHome {
 public:
  /// `tables` and `pool` outlive it. Marks begin at `mark`: the step before the first one.
  EmbeddedHome(std::vector<EmbeddingTable>& tables, int writers, ThreadPool& pool,
               int64_t mark = RowHome::kNoFence);
  ~EmbeddedHome();

  int writers() const { return static_cast<int>(writers_.size()); }
  RowHome& writer(int number);

 private:
  class Writer;
  /// A fetch whose fence is beyond some mark.
  struct Waiting {
    Writer* writer = nullptr;
    RowHome::Ticket ticket = 0;
    std::vector<FetchedRows> rows;
    int64_t fence = 0;
  };
  /// A cut that some writers have called.
  struct Cut {
    int64_t step = 0;
    std::shared_ptr<RowSnapshot> image;
    std::vector<std::pair<Writer*, RowHome::Ticket>> callers;
  };

  // All while mutex_ is held:
  template <class Rows>
  Status check(std::span<const Rows> rows) const;
  int64_t least_mark() const;
  void read(std::span<const FetchedRows> rows) const;
  void replace(std::span<const PutRows> rows, int64_t step);
  void answer_fetches();
  Status join_cut(Writer& writer, RowHome::Ticket ticket, int64_t step,
                  std::span<const PutRows> changed);

  std::vector<EmbeddingTable>& tables_;
  ThreadPool& pool_;
  std::vector<RowRecord> records_;  // [tables]
  std::mutex mutex_;                // of all that follows, and of tables_ and what writers have
  TableSnapshots snapshots_;
  std::vector<std::unique_ptr<Writer>> writers_;
  std::vector<Waiting> waiting_;
  std::deque<Cut> cuts_;    // that not all writers have called yet, oldest first
  int64_t whole_cuts_ = 0;  // that all have
};

/// A home for one writer that has tables of its own.
std::shared_ptr<RowHome> make_embedded_home(std::vector<EmbeddingTable> tables, ThreadPool& pool);

}  // namespace recmill::table
