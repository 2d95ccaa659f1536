// SPDX-License-Identifier: Apache-2.0
// One iteration's update of rows that several ranks hold.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "device/thread_pool.h"
#include "store/exchange/gradient_exchange.h"
#include "store/exchange/sent_sums.h"
#include "store/sharded/dense_reduce.h"
#include "store/sharded/finished_sums.h"
#include "store/sharded/mean_squares.h"
#include "store/sharded/sharded_options.h"
#include "store/tables/rank_tables.h"
#include "table/embedding_table.h"
#include "table/optimizers/row_step.h"

namespace recmill::store {

/// Each row is updated by its owner, or by all ranks that have a copy, once all of its gradients
/// are added. Where columns are split, what travels is as wide as the receiver's columns.
class RowUpdates {
 public:
  /// `of`: this rank's shares; all referenced objects outlive this. `shared`: ranks share memory,
  /// and gradients go that way.
  RowUpdates(Communicator& communicator, RankTables& of, ShardedOptions options, bool shared);

  /// What will be sent of a batch's `distinct` rows [tables], which outlive it; `places` [tables]:
  /// of these, by find_places(). Any thread.
  void plan(std::span<const DistinctRows> distinct,
            std::span<const std::vector<table::RowPlace>> places, int slices,
            std::vector<SentSums>& sent) const;
  /// How much a batch names of rows with copies, in words. Any thread.
  int64_t copied_words(std::span<const std::vector<table::RowPlace>> places) const;
  /// What all ranks have to know of a batch of so many words before update(), in 8 bytes.
  int64_t note(int64_t copied_words) const;

  /// Collective. Sums `sources` [tables] over this rank's slices, brings the sums to the ranks that
  /// hold the rows, and applies the row optimizers. Frozen tables are left alone. `planned`: of
  /// `sources`; empty: they are of several batches. `notes` [batches][ranks]. `pooled`
  /// [tables], or empty: finished sums of other rows that this rank owns. Gives how many rows that
  /// this rank owns were updated; of split columns, those of the first ones.
  Result<int64_t> update(std::span<const TableGradients> sources, std::span<const SentSums> planned,
                         std::span<const std::span<const int64_t>> notes, int slices,
                         const table::RowStep& step, std::span<const TableSums> pooled = {});

 private:
  CopyReduce choose(std::span<const std::span<const int64_t>> notes, int slices);
  Recipients recipients(CopyReduce way) const;
  Result<std::vector<TableSums>> exchange(std::span<const TableGradients> sources,
                                          std::span<const SentSums> planned, Recipients recipients,
                                          SentUnit unit, int slices);
  Result<int64_t> update_copies(std::span<const TableGradients> sources,
                                std::span<const TableSums> sums, CopyReduce way, int slices,
                                const table::RowStep& step);
  /// Rows of one table that apply() was given: where they are, and how many this rank owns.
  struct Located {
    std::vector<table::RowPlace> places;
    std::vector<int64_t> slots;
    int64_t owned = 0, owned_copied = 0;  // the latter: of rows with copies
    void find(std::span<const int64_t> rows, const table::EmbeddingTable& table);
  };
  int64_t apply(std::span<const TableSums> sums, const table::RowStep& step);

  Communicator& communicator_;
  RankTables& of_;
  std::vector<table::EmbeddingTable>& tables_;  // of_'s
  ThreadPool& pool_;
  const ShardedOptions options_;
  const SentUnit unit_;           // of rows without copies
  int64_t all_copied_words_ = 0;  // of all rows with copies, with their numbers
  double copies_ = 1;             // of such a row, on average
  double touched_ = 0;            // words of them that ranks name in this update, added up
  int64_t distinct_words_ = 0;    // of them, whose home this rank is, in this update
  GradientExchange exchange_;
  MeanSquares mean_squares_;
  FinishedSums finished_;
  std::vector<Located> located_;        // [tables], by the last apply()
  std::unique_ptr<DenseReduce> dense_;  // made when it is first used
};

}  // namespace recmill::store
