// SPDX-License-Identifier: Apache-2.0
// Rows from the ranks that keep them to the rank that looks them up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "comm/batched_fetch.h"
#include "comm/communicator.h"
#include "device/thread_pool.h"
#include "kernels/embedding_pool/embedding_pool.h"
#include "kernels/row_storage.h"
#include "store/exchange/early_rows.h"
#include "store/exchange/rows_by_rank.h"
#include "table/embedding_table.h"

namespace recmill::store {

/// What a batch wants of one table.
struct WantedRows {
  const RowsByRank* by_source = nullptr;
  bool own_too = true;  // rows that this rank holds as well, not only those of others
};

/// Rows of several batches that are looked up together, which their ranks send unasked: each knows
/// alike what goes where. [ranks], by table in ascending slots. Some may have come before.
struct UnaskedRows {
  std::vector<GroupedIds> out;                       // slots of this rank, to each
  std::vector<GroupedIds> in;                        // slots of each, which come here
  std::shared_ptr<const EarlyRows> early = nullptr;  // what has come before; null: nothing has
};

class RowFetch {
 public:
  /// `tables`: this rank's shares; all referenced objects outlive this.
  RowFetch(Communicator& communicator, std::span<const table::EmbeddingTable> tables,
           ThreadPool& pool, bool overlap);

  size_t tables() const { return tables_.size(); }
  /// Collective. The rows that `wanted` [tables] names, by table in the order of
  /// RowsByRank::order, as float32; valid until the next call. Rows that this rank holds are copied
  /// while the others are on their way, or with no overlap afterwards. Every rank is told the
  /// `note` of each: notes().
  Result<std::vector<kernels::RowStorage>> fetch(std::span<const WantedRows> wanted, int64_t note);
  /// The same where this rank holds all rows. Not collective, and nobody is told anything.
  std::vector<kernels::RowStorage> fetch_own(std::span<const WantedRows> wanted);
  /// The same where rows come unasked: `rows` has all that `wanted` names of other ranks.
  /// Collective where it `begins`; further calls of the same rows read what came then.
  Result<std::vector<kernels::RowStorage>> fetch(std::span<const WantedRows> wanted, int64_t note,
                                                 const UnaskedRows& rows, bool begins);
  /// [ranks], of the last call.
  std::span<const int64_t> notes() const { return notes_; }

 private:
  void ask(std::span<const WantedRows> wanted, int64_t note);
  Status exchange_unasked(const UnaskedRows& rows, int64_t note);
  Status take(std::span<const WantedRows> wanted, int rank, const UnaskedRows& rows);
  std::vector<kernels::RowStorage> fetched(std::span<const WantedRows> wanted) const;
  Status hear_notes(std::span<const GroupedIds> asked);
  void read_asked(std::span<const GroupedIds> asked);
  void read_own(std::span<const WantedRows> wanted);
  Status begin_replies(Exchange& exchange, std::span<const WantedRows> wanted);
  void take(std::span<const WantedRows> wanted, int rank);
  size_t expected(std::span<const WantedRows> wanted, int rank) const;

  Communicator& communicator_;
  const std::span<const table::EmbeddingTable> tables_;
  ThreadPool& pool_;
  const bool overlap_;
  BatchedFetch slots_;                        // groups are tables, and one of the note
  std::vector<GroupedIds> wanted_;            // [ranks]
  std::vector<int64_t> notes_;                // [ranks]
  std::vector<std::vector<float>> replies_;   // [ranks][rows][columns], table after table
  std::vector<std::vector<float>> incoming_;  // likewise, of the others
  std::vector<std::vector<float>> fetched_;   // [tables][rows][dim]
};

}  // namespace recmill::store
