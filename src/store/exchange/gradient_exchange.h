// SPDX-License-Identifier: Apache-2.0
// Gradients of rows from the ranks that looked them up to those that update them.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "batch/distinct_rows.h"
#include "comm/communicator.h"
#include "comm/slice_tree.h"
#include "device/thread_pool.h"
#include "kernels/distinct_rows/distinct_rows.h"
#include "kernels/row_update/gradient_sums.h"
#include "store/exchange/row_exchange.h"
#include "store/exchange/sent_sums.h"
#include "table/embedding_table.h"

namespace recmill::store {

/// What one table's gradients are summed from.
struct TableGradients {
  const DistinctRows* distinct = nullptr;            // of this rank's lookups
  std::span<const table::RowPlace> places;           // of these, by find_places()
  std::span<const kernels::GradientRows> gradients;  // as `distinct` names features
  int64_t ahead = 16;                                // lookups that gradient rows are fetched ahead
};

/// Rows of one table that ranks looked up, each once, and the parts of their gradients.
struct TableSums {
  std::span<const int64_t> rows;
  kernels::RowParts parts;  // of this rank's columns
};

class GradientExchange {
 public:
  /// `tables`: this rank's shares; all referenced objects outlive this. `shared`: as RowExchange's.
  GradientExchange(Communicator& communicator, const std::vector<table::EmbeddingTable>& tables,
                   ThreadPool& pool, bool shared);

  /// Collective. Sends what `sent` [tables] says of `sources`, and gives what came here [tables],
  /// valid until the next call: over all slices of the global batch, in the order of the contract.
  /// Frozen tables take no part. Equal `unit` on all ranks.
  Result<std::vector<TableSums>> exchange(std::span<const TableGradients> sources,
                                          std::span<const SentSums* const> sent, int slices,
                                          SentUnit unit);

 private:
  struct Parts {
    std::vector<int64_t> begins;               // [rows + 1], into parts
    std::vector<kernels::GradientPart> parts;  // by row in the order of their slices
    std::vector<float> sums;                   // of lookups, where these came one by one
  };

  /// Where the sums of one table go.
  struct Outs {
    std::vector<float*> first;                            // [entries]; null: nowhere
    std::vector<std::pair<const float*, float*>> copies;  // from, to
  };
  /// Entries of SentSums of one table and range of slices, whose sums are together at `out`, or
  /// where outs_ says.
  struct SumTask {
    size_t table, range;
    int64_t begin, count;
    ColumnRange columns;
    float* out;
  };

  std::vector<int64_t> widths(int to, size_t ranges) const;
  void address(std::span<const SentSums* const> sent, size_t ranges);
  void sum(std::span<const TableGradients> sources, std::span<const SentSums* const> sent,
           std::span<const SliceRange> ranges);
  bool is_split(size_t table) const;
  void point_sums(const SentSums& sent, size_t table, size_t ranges);
  void add_columns(size_t table, size_t range, int64_t begin, size_t ranges,
                   std::vector<SumTask>& tasks);
  static void add_tasks(SumTask of, std::vector<SumTask>& tasks);
  void run(std::span<const SumTask> tasks, std::span<const TableGradients> sources,
           std::span<const SentSums* const> sent, std::span<const SliceRange> ranges);
  void find_rows(std::span<const RowMessage> messages, int slices, SentUnit unit);
  std::vector<kernels::GradientRows> given(size_t table, std::span<const RowMessage> messages);
  static void collect_parts(const DistinctRows& distinct,
                            std::span<const kernels::GradientRows> given, Parts& parts);
  void sum_lookups(const DistinctRows& distinct, std::span<const kernels::GradientRows> given,
                   int slices, Parts& parts);

  Communicator& communicator_;
  const std::vector<table::EmbeddingTable>& tables_;
  ThreadPool& pool_;
  RowExchange mail_;                    // of groups (table, range)
  std::vector<Outs> outs_;              // [tables], of columns that are not split
  kernels::DistinctRowsFinder finder_;  // of the rows that the ranks send
  std::vector<DistinctRows> distinct_;  // [tables], a rank being a feature
  std::vector<Parts> parts_;            // [tables], beside distinct_
};

}  // namespace recmill::store
