// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "device/thread_pool.h"
#include "store/exchange/gradient_exchange.h"
#include "store/exchange/row_exchange.h"
#include "table/embedding_table.h"

namespace recmill::store {

/// Finished gradients of rows with copies, from their homes to the other holders.
class FinishedSums {
 public:
  /// `tables`: this rank's shares; all referenced objects outlive this. `shared`: as RowExchange's.
  FinishedSums(Communicator& communicator, const std::vector<table::EmbeddingTable>& tables,
               ThreadPool& pool, bool shared);

  /// Collective. `sums` [tables]: what came to this rank of rows whose home it is; those without
  /// copies are left out. `places` [tables]: of their rows, by find_places(). Gives those of other
  /// homes [tables], valid until the next call.
  Result<std::vector<TableSums>> pass_on(std::span<const TableSums> sums,
                                         std::span<const std::span<const table::RowPlace>> places);

 private:
  struct Incoming {
    std::vector<int64_t> rows, begins;
    std::vector<kernels::GradientPart> parts;
  };
  struct Copied {
    std::vector<int64_t> indices;  // of the table's sums
    RowsByRank by_rank;            // of those, at their holders
  };

  void address(std::span<const TableSums> sums,
               std::span<const std::span<const table::RowPlace>> places);
  void fill(const TableSums& sums, size_t table);
  Result<std::vector<TableSums>> collect();

  Communicator& communicator_;
  const std::vector<table::EmbeddingTable>& tables_;
  ThreadPool& pool_;
  std::vector<int64_t> widths_;  // [tables]
  std::vector<Copied> copied_;   // [tables]
  RowExchange mail_;
  std::vector<Incoming> incoming_;  // [tables]
};

}  // namespace recmill::store
