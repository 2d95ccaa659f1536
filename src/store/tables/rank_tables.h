// SPDX-License-Identifier: Apache-2.0
// What the stores have in common whose rows all are in the memory of the ranks that train.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/thread_pool.h"
#include "kernels/embedding_pool/fused_pool.h"
#include "kernels/row_update/templates.h"
#include "schema/table_spec.h"
#include "store/embedding_store.h"
#include "table/embedding_table.h"
#include "table/table_snapshots.h"
#include "table/table_update.h"

namespace recmill::store {

/// Which kernels a store runs. Empty lists: the defaults.
struct StoreKernels {
  std::vector<kernels::PoolKernel> pool;  // [features]
  int64_t tile = kernels::kWholeFeature;  // samples of a feature in one task, at most
  std::vector<kernels::RowUpdateKernel> row_update = {};  // [tables]; of frozen ones not used
  int64_t update_floats = table::kTaskFloats;             // table::TableUpdater's task_floats
  std::shared_ptr<const kernels::PoolCode> code = {};     // made for `pool`; null: none
};

/// This rank's shares of a model's tables, with what reads and changes them. Its store alone does
/// so, which owns it, and move_rows().
struct RankTables {
  /// `tables`: as `model` has them. The pool outlives this.
  RankTables(ModelSpec model, std::vector<table::EmbeddingTable> tables, ThreadPool& pool,
             StoreKernels kernels);
  RankTables(const RankTables&) = delete;  // parts refer to `tables`

  /// By table: the gradients of its features in the first update, in the second ...
  std::vector<std::vector<kernels::GradientRows>> gradients_of(
      std::span<const Update> updates) const;
  /// Counts a batch's lookups.
  void count_lookups(const SparseBatch& sparse);
  StoreStats stats() const { return {lookups.load(), distinct_rows.load(), updated_rows.load()}; }

  const ModelSpec model;
  std::vector<std::vector<size_t>> features_of;  // by table: its features, ascending
  std::vector<table::EmbeddingTable> tables;
  table::TableSnapshots snapshots;                         // of `tables`
  kernels::FusedPool fused_pool;                           // of the model's features
  const std::vector<kernels::RowUpdateKernel> row_update;  // [tables], or empty: the defaults
  const int64_t update_floats;
  /// [tables]: which rows are in the slots of tables that hold rows of several; empty: none does.
  std::vector<const table::SlotNames*> names;
  ThreadPool& pool;
  std::atomic<int64_t> lookups{0}, distinct_rows{0}, updated_rows{0};
};

}  // namespace recmill::store
