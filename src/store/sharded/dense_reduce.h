// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "comm/ordered_reduce.h"
#include "device/thread_pool.h"
#include "schema/cluster_spec.h"
#include "store/exchange/gradient_exchange.h"
#include "table/embedding_table.h"

namespace recmill::store {

/// Adds the gradients of all rows with copies as one vector, zeros where a row was not looked up,
/// and at its end for each row how many ranks have looked it up: only rows that somebody did are
/// updated.
class DenseReduce {
 public:
  /// `tables`: this rank's shares; all referenced objects outlive this.
  DenseReduce(Communicator& communicator, const std::vector<table::EmbeddingTable>& tables,
              ThreadPool& pool);

  /// Of the vector.
  static int64_t elements(const std::vector<table::EmbeddingTable>& tables);
  /// What one takes on a rank whose slices are one subtree.
  static int64_t bytes(const ModelSpec& model, std::span<const table::TableShare> shares);

  /// Collective. Gives the rows that this rank holds and any rank looked up [tables]; valid until
  /// the next call.
  Result<std::vector<TableSums>> reduce(std::span<const TableGradients> sources, int slices);

 private:
  struct CopiedRows {
    int64_t first = 0;           // of their gradients in the vector
    int64_t first_flag = 0;      // of their counts in it
    std::vector<int64_t> rows;   // by number; -1: this rank has no copy
    std::vector<int64_t> found;  // what reduce() gives
    std::vector<int64_t> begins;
    std::vector<kernels::GradientPart> parts;
  };

  void add_table(const TableGradients& source, size_t table, std::span<const SliceRange> trees);
  TableSums collect(size_t table);

  Communicator& communicator_;
  const std::vector<table::EmbeddingTable>& tables_;
  ThreadPool& pool_;
  int64_t elements_ = 0;
  std::vector<CopiedRows> copied_;        // [tables]
  std::vector<std::vector<float>> sums_;  // [subtrees of this rank's slices][elements]
  std::vector<float> total_;              // [elements]
  int slices_ = 0;
  std::unique_ptr<OrderedReduce<float>> reduce_;  // of slices_
};

}  // namespace recmill::store
