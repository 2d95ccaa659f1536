// SPDX-License-Identifier: Apache-2.0
// Rows and their gradients between the ranks that need them and the ranks that own them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "batch/distinct_rows.h"
#include "comm/batched_fetch.h"
#include "comm/communicator.h"
#include "comm/shard_tree.h"
#include "device/pool.h"
#include "kernels/distinct_rows/distinct_rows.h"
#include "kernels/row_storage.h"
#include "kernels/row_update/gradient_sums.h"
#include "store/mean_squares.h"
#include "store/table_snapshots.h"
#include "table/embedding_table.h"
#include "table/row_step.h"

namespace recmill::store {

/// Distinct rows of one table, grouped by the rank that owns them; where columns are split, each
/// rank that has some owns all rows.
struct RowsByOwner {
  std::vector<table::RowRange> of;  // [ranks], into order
  std::vector<int64_t> order;       // [rows], indices of the rows that were given
  std::vector<int64_t> place;       // [rows], index in order of each row that was given
  std::vector<int64_t> slots;       // [rows] beside order: where the owner keeps the row

  void group(std::span<const int64_t> rows, const table::EmbeddingTable& table);
};

/// What one table's gradients are summed from.
struct TableGradients {
  const DistinctRows* distinct = nullptr;
  std::span<const kernels::GradientRows> gradients;  // as distinct->sources names features
  const RowsByOwner* by_owner = nullptr;             // of distinct->rows
  int64_t ahead = 16;                                // lookups that gradient rows are fetched ahead
};

/// The bytes of one message: rows by table, and `width` floats for each.
///   int64 [tables]                 counts
///   int64 [sum of counts]          rows, table after table
///   float32 [sum of count * width] values, table after table; then zeros up to 64 bytes
class RowMessage {
 public:
  RowMessage() = default;
  RowMessage(RowMessage&&) = default;
  RowMessage& operator=(RowMessage&&) = default;
  RowMessage(const RowMessage&) = delete;  // it points into itself
  RowMessage& operator=(const RowMessage&) = delete;

  /// A message to be filled in; keeps its memory.
  void reset(std::span<const int64_t> counts, std::span<const int64_t> widths);
  /// Fails when the bytes are no message of these widths. Refers to `bytes`.
  static Result<RowMessage> parse(std::span<const std::byte> bytes,
                                  std::span<const int64_t> widths);

  int64_t count(size_t table) const { return counts_[table]; }
  std::span<int64_t> rows(size_t table) { return {rows_[table], size_t(counts_[table])}; }
  std::span<const int64_t> rows(size_t table) const {
    return {rows_[table], size_t(counts_[table])};
  }
  float* values(size_t table) { return values_[table]; }
  const float* values(size_t table) const { return values_[table]; }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(words_)); }

 private:
  void point_into(int64_t* words, std::span<const int64_t> widths);

  std::vector<int64_t> words_;  // empty in a parsed message
  std::vector<int64_t> counts_;
  std::vector<int64_t*> rows_;
  std::vector<float*> values_;
};

/// A row has one owner and a slot there, or, where columns are split, several that have a piece of
/// it each: what travels between two ranks is then as wide as the owner's columns. Both calls are
/// collective.
class RowExchange {
 public:
  /// `tables`: this rank's shares; all referenced objects outlive the exchange.
  RowExchange(Communicator& communicator, std::vector<table::EmbeddingTable>& tables,
              TableSnapshots& snapshots, Pool& pool);

  /// Every row that `wanted` [tables] names, by table in the order of RowsByOwner::order, as
  /// float32. Valid until the next call.
  Result<std::vector<kernels::RowStorage>> fetch(std::span<const RowsByOwner> wanted);

  /// Sums `sources` [tables] over this rank's shards, brings the sums of whole subtrees to the
  /// rows' owners, and applies the row optimizers. Tables that are frozen are left alone. Returns
  /// how many rows of this rank's share were updated; of split columns, those of the first ones.
  Result<int64_t> update(std::span<const TableGradients> sources, int shards,
                         const table::RowStep& step);

 private:
  // The rows of one table that several ranks sent sums for.
  struct Parts {
    std::vector<int64_t> begins;               // [rows + 1], into parts
    std::vector<kernels::GradientPart> parts;  // by row in the order of their subtrees
  };

  std::vector<std::span<const std::byte>> answer(std::span<const GroupedIds> asked);
  Status take(const RowsByOwner& wanted, size_t table, int rank, std::span<const std::byte>& rows);
  std::vector<int64_t> widths(int from, int to, int shards) const;
  void address(std::span<const TableGradients> sources, int shards);
  void sum_subtrees(std::span<const TableGradients> sources, int shards);
  Result<int64_t> apply(const std::vector<RowMessage>& messages, int shards,
                        const table::RowStep& step);
  void collect_parts(size_t table, const std::vector<RowMessage>& messages, int shards);

  Communicator& communicator_;
  std::vector<table::EmbeddingTable>& tables_;
  TableSnapshots& snapshots_;
  Pool& pool_;
  BatchedFetch slots_;                       // groups are tables
  std::vector<GroupedIds> wanted_;           // [ranks]
  std::vector<RowMessage> outgoing_;         // [ranks]
  std::vector<std::vector<float>> replies_;  // [ranks][rows][dim], table after table
  std::vector<std::vector<float>> fetched_;  // [tables][rows][dim]
  kernels::DistinctRowsFinder finder_;       // of the rows that the ranks send
  std::vector<DistinctRows> distinct_;       // [tables], a rank being a feature
  std::vector<Parts> parts_;                 // [tables], beside distinct_
  MeanSquares mean_squares_;
};

}  // namespace recmill::store
