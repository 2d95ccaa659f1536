// SPDX-License-Identifier: Apache-2.0
// Row-wise optimizers where a row's columns are stored at several ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"
#include "device/thread_pool.h"
#include "kernels/row_update/gradient_sums.h"
#include "kernels/row_update/square_lanes.h"
#include "store/exchange/gradient_exchange.h"
#include "table/embedding_table.h"

namespace recmill::store {

/// The mean square of each row's gradient, L2 included, bitwise that of a whole row: a row's lanes
/// go from owner to owner in the order of columns, each of which folds its own squares on; the last
/// one makes the mean and tells the others. As many all-to-alls as the table of most pieces has;
/// all tables' share them, and none where no table needs it.
class MeanSquares {
 public:
  /// `tables`: this rank's shares; all referenced objects outlive this.
  MeanSquares(Communicator& communicator, const std::vector<table::EmbeddingTable>& tables,
              ThreadPool& pool);

  /// Collective. `gradients` [tables]: of this rank's columns, of the same rows in the same order
  /// at all owners of a table, whose weights are those before the update.
  Status exchange(std::span<const TableSums> gradients);
  /// [rows]; empty where the table's rows are whole, or its optimizer asks for none.
  std::span<const float> of(size_t table) const { return means_[table]; }

 private:
  void fold(size_t table, const TableSums& gradients);
  void append(size_t table, int round, std::vector<std::vector<float>>& to_rank) const;
  Status take(size_t table, int round, std::vector<std::span<const std::byte>>& from_rank);

  Communicator& communicator_;
  const std::vector<table::EmbeddingTable>& tables_;
  ThreadPool& pool_;
  std::vector<size_t> split_;                             // tables that this is about
  int rounds_ = 0;                                        // pieces of that with the most
  std::vector<std::vector<kernels::SquareLanes>> lanes_;  // [tables][rows]
  std::vector<std::vector<float>> means_;                 // [tables][rows]
};

}  // namespace recmill::store
