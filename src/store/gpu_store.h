// SPDX-License-Identifier: Apache-2.0
// All rows in the memory of one GPU, or of the emulator that plays one: for one rank.
//
// prepare() copies bags to pinned memory and maps blocks to them; lookup() sends them and pools on
// the GPU, update() finds their distinct rows, sums and applies there. The rest of a step is the
// CPU's: pooled rows are copied to the caller's output, gradients from it. The host keeps room for
// the tables, which snapshots read and write_rows() writes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "device/gpu/gpu.h"
#include "device/pool.h"
#include "kernels/codegen/compiled_gpu_pool.h"
#include "kernels/distinct_rows/gpu_distinct_rows.h"
#include "store/embedding_store.h"
#include "store/table_snapshots.h"
#include "table/gpu_rows.h"
#include "table/gpu_updater.h"

namespace recmill::store {

/// The schedules of a store's lookups, and how its kernels are made.
struct GpuStoreKernels {
  std::vector<kernels::Schedule> pool = {};  // [features]; empty: the default ones
  int64_t blocks = 0;  // of a multiprocessor, that they were chosen for; 0: any number
  kernels::codegen::Dispatch dispatch = kernels::codegen::Dispatch::branches;
  int shards = 1024;  // of a global batch, at most
  kernels::codegen::CompileForGpu compile;
};

class GpuStore final : public EmbeddingStore {
 public:
  /// Allocates all tables with their initial rows, and compiles what they need. Fails as
  /// table::EmbeddingTable::create and `compile`, and where the GPU's memory is short. The pool
  /// outlives the store.
  static Result<std::unique_ptr<GpuStore>> create(ModelSpec model, uint64_t seed,
                                                  std::unique_ptr<Gpu> gpu,
                                                  const GpuStoreKernels& kernels, Pool& pool);
  ~GpuStore() override;

  MemoryLedger need(const ModelSpec& model, const ClusterSpec& cluster) const override;
  /// The batch holds all shards.
  Result<std::unique_ptr<Prepared>> prepare(const Batch& batch) override;
  Status lookup(Prepared& prepared, Output output, Stream& stream) override;
  Status update(std::span<const Update> updates, const Step& step, Stream& stream) override;
  Status settle() override;
  std::unique_ptr<RowSnapshot> snapshot(int64_t kept_bytes) override;
  table::Extent extent(int table) const override { return tables_[table].extent(); }
  Status write_rows(const RowBlock& block) override;
  StoreStats stats() const override;

 private:
  struct Work;
  class GpuPrepared;

  GpuStore(ModelSpec model, std::vector<table::EmbeddingTable> tables, std::unique_ptr<Gpu> gpu,
           GpuStream stream, Pool& pool);
  Status allocate_rows();
  Status load_pool(const GpuStoreKernels& kernels);
  Status load_finder(const kernels::codegen::CompileForGpu& compile);
  Status load_updater(const GpuStoreKernels& kernels);
  Result<std::vector<GpuKernel>> load(std::span<const kernels::codegen::GpuSource> sources,
                                      const kernels::codegen::CompileForGpu& compile);
  int64_t rows_out(size_t feature, const SparseBatch& sparse) const;
  std::vector<kernels::GpuTableLookups> table_lookups(std::span<const Work* const> batches) const;
  Status stage(std::span<const Work* const> batches, kernels::GpuLookups& lookups,
               table::GpuUpdates& updates) const;
  Result<std::vector<std::vector<kernels::gpu::Gradients>>> send_gradients(
      std::span<const Update> updates);
  Status download();
  Status upload_written();

  const ModelSpec model_;
  std::vector<std::vector<size_t>> features_of_;  // by table: its features, ascending
  std::vector<table::EmbeddingTable> tables_;     // of the host
  TableSnapshots snapshots_;                      // of them
  Pool& pool_;

  const std::unique_ptr<Gpu> gpu_;
  kernels::codegen::CompiledGpuPool fused_pool_;
  std::vector<kernels::codegen::GpuCode> codes_;            // beside it
  std::unique_ptr<kernels::GpuDistinctRowsFinder> finder_;  // its run() guarded by mutex_
  std::unique_ptr<table::GpuUpdater> updater_;
  int most_shards_ = 0;  // that the updater is for

  std::mutex prepare_mutex_;
  std::vector<std::unique_ptr<Work>>
      resting_;  // guarded by prepare_mutex_: memory to be used again

  // Guards all below, and the tables of the host: evaluations may look up while training does.
  std::mutex mutex_;
  GpuStream stream_;
  std::vector<table::GpuRows> rows_;  // [tables]
  std::vector<char> written_;         // [tables]: the host has newer rows
  PinnedBuffer staging_;
  GpuBuffer outputs_, gradients_;
  PinnedBuffer outputs_of_host_, gradients_of_host_;
  PinnedBuffer counted_;                // [tables] int64_t: distinct rows
  kernels::GpuLookups merged_lookups_;  // of several batches in one iteration
  table::GpuUpdates merged_updates_;    // beside

  std::atomic<int64_t> lookups_{0}, distinct_rows_{0}, updated_rows_{0};
};

}  // namespace recmill::store
