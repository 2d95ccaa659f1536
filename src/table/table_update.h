// SPDX-License-Identifier: Apache-2.0
// Backward and row optimizer of all tables of a batch in one call: each distinct row once.
#pragma once

#include <cstdint>
#include <span>

#include "base/random.h"
#include "batch/distinct_rows.h"
#include "device/thread_pool.h"
#include "kernels/row_update/gradient_sums.h"
#include "kernels/row_update/templates.h"
#include "table/embedding_table.h"
#include "table/optimizers/row_step.h"
#include "table/slot_names.h"

namespace recmill::table {

/// The random numbers of a table's stochastic rounding in one iteration, by row and element.
Random rounding_of(const EmbeddingTable& table, const RowStep& step);
/// `table_key`: the hash of the table's name.
Random rounding_of(uint64_t seed, uint64_t table_key, const RowStep& step);

/// One table's part of an iteration when this rank holds all of its rows and sees all of its
/// lookups (share().ranks() == 1).
struct TableUpdate {
  EmbeddingTable* table = nullptr;
  const DistinctRows* distinct = nullptr;            // over all slices of the global batch
  std::span<const kernels::GradientRows> gradients;  // [features of the table]
  int slices = 1;                                    // of the global batch
  /// How it is done; null: with DistinctRows, as untuned. What the kernel does not need of
  /// `distinct` with `gradients`, and `bags`, may be left out.
  const kernels::RowUpdateKernel* kernel = nullptr;
  kernels::TableBags bags = {};
  const SlotNames* names = nullptr;  // where the table holds rows of several
};

/// What a task works through where nothing was tuned.
constexpr int64_t kTaskFloats = 64 * 1024;

/// Sums the gradient of each row that a lookup names (kernels/row_update) and applies the table's
/// row optimizer to it. Frozen tables are left alone. Tables and rows run in parallel, balanced by
/// lookups; the same bits with every kernel, at any number of threads and on any instruction set.
/// Keeps memory from batch to batch.
class TableUpdater {
 public:
  /// `task_floats`: gradients and weights that one task works through, about.
  explicit TableUpdater(int64_t task_floats = kTaskFloats) : task_floats_(task_floats) {}

  /// Gives the rows that were updated.
  int64_t update(std::span<const TableUpdate> updates, const RowStep& step, ThreadPool& pool);

 private:
  const int64_t task_floats_;
  kernels::RowSumsStock stock_;
};

/// TableUpdater::update(), once.
void update_tables(std::span<const TableUpdate> updates, const RowStep& step, ThreadPool& pool);

/// The plain meaning of the above, on one thread, with DistinctRows.
void update_tables_reference(std::span<const TableUpdate> updates, const RowStep& step);

/// One table's part of an iteration when gradients were summed by several ranks: the rows of this
/// rank's share that anyone looked up, each once, and the parts of their gradients.
struct TableParts {
  EmbeddingTable* table = nullptr;
  std::span<const int64_t> rows;             // [n], rows of the table, held by its share
  std::span<const int64_t> slots;            // [n], where
  kernels::RowParts parts;                   // of the n rows, of the columns that this rank holds
  std::span<const float> mean_squares = {};  // [n], of whole rows where these are in pieces
  const SlotNames* names = nullptr;          // of `slots`, where the table holds rows of several
};

/// Completes the sums over the same tree and applies the row optimizer: bitwise what
/// update_tables() does with the whole batch.
void update_tables_from_parts(std::span<const TableParts> updates, const RowStep& step,
                              ThreadPool& pool);

}  // namespace recmill::table
