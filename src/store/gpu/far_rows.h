// SPDX-License-Identifier: Apache-2.0
// Tables of a GpuStore that have rows in the host's memory: slots of rows that were made on the
// GPU, and how many rows are looked up and updated over the bus.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "batch/gpu_sparse_batch.h"
#include "device/gpu/gpu.h"
#include "device/gpu/staged_arrays.h"
#include "kernels/distinct_rows/gpu_distinct_arguments.h"
#include "kernels/near_rows/gpu_near_rows.h"
#include "schema/table_spec.h"
#include "store/embedding_store.h"
#include "store/gpu/rows_at.h"

namespace recmill::store {

class FarRows {
 public:
  /// What is known of a batch: its slots and count where bags were made on the GPU. Its memory is
  /// used again.
  struct OfBatch {
    int64_t on_host = 0;  // far lookups that the host has counted
    bool is_counted_there = false;
    GpuBuffer slots, counted;
  };

  /// Of one GPU: what a batch takes whose bags of so many lookups are made there and have slots,
  /// and what the maps of tables with these take.
  static int64_t need_of_batch(int64_t lookups);
  /// What counts take of the GPU's memory and the host's, where `tables` are in two memories.
  static GpuBytes need(int64_t tables);

  /// `rows` [tables]. Compiles what they need. The GPU outlives this. Fails as `compile`, and where
  /// memory is short.
  static Result<std::unique_ptr<FarRows>> make(const ModelSpec& model, std::span<const RowsAt> rows,
                                               Gpu& gpu,
                                               const kernels::codegen::CompileForGpu& compile);

  /// Bags of a batch that has some on the GPU, as kernels read them: with slots where a table is in
  /// two memories, once what is enqueued on `stream` has happened. One thread at a time.
  Result<std::vector<BagsOnGpu>> map(const SparseBatch& batch, OfBatch& of, GpuStream& stream);
  /// Lookups of tables that are far as a whole.
  int64_t lookups_of_far_tables(const SparseBatch& batch) const;

  /// Enqueues what the GPU counts of an update: of `found` [tables], and of its batches. What was
  /// enqueued before has been taken by then.
  Status count(std::span<const kernels::gpu::FoundRows> found,
               std::span<const OfBatch* const> batches, GpuStream& stream);
  /// Once that has happened; `distinct` [tables]: rows that were found.
  FarCounts take(std::span<const int64_t> distinct);

 private:
  FarRows(const ModelSpec& model, std::span<const RowsAt> rows, Gpu& gpu);
  bool is_split(size_t feature) const {
    return rows_[model_.features[feature].table].near != nullptr;
  }
  Status send_lines(size_t table, GpuStream& stream);

  const ModelSpec model_;
  const std::vector<RowsAt> rows_;  // [tables]
  std::vector<size_t> split_;       // tables in two memories
  Gpu& gpu_;
  std::optional<kernels::GpuNearRows> kernels_;  // where there are such
  std::vector<GpuBuffer> lines_;                 // [tables], once they are asked for
  GpuBuffer counted_;                            // [split] i64: far rows that were found
  PinnedBuffer counted_of_host_;                 // the same, and far lookups of each batch
  FarCounts taken_;                              // by the host, of what is enqueued
  size_t counted_batches_ = 0;
};

}  // namespace recmill::store
