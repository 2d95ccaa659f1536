// SPDX-License-Identifier: Apache-2.0
// All rows where one GPU reads and writes them, or the emulator that plays one: for one rank. Each
// table is stored in the GPU's memory, or in pinned memory of the host, which its kernels reach
// over the bus (FBGEMM's DEVICE and HOST), or some of its rows in the one and the others in the
// other (FAE's hot rows and cold ones): kernels are the same, and so are their answers.
//
// prepare() copies bags to pinned memory, maps blocks to them and sends both, beside what the GPU
// is doing. lookup() pools there, and in training finds the distinct rows beside; update() sums and
// applies. All three enqueue their work and go on, where outputs and gradients are the GPU's too
// (Stream::gpu() is stream()); where they are the host's, lookup() waits to copy them there. Of
// rows in the GPU's memory the host keeps room for copies, which snapshots read and write_rows()
// writes. Those in the host's are read and written where they are: while a snapshot is being
// read, update() first keeps what it overwrites, and waits until the GPU is done. Of a table in two
// memories kernels are given slots (kernels/near_rows) in place of rows, and rounding goes by rows.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "device/gpu/gpu.h"
#include "device/thread_pool.h"
#include "kernels/codegen/gpu/compiled_gpu_pool.h"
#include "kernels/distinct_rows/gpu_distinct_rows.h"
#include "store/gpu/far_rows.h"
#include "store/gpu/gpu_store_sources.h"
#include "store/gpu/rows_at.h"
#include "store/gpu/store_on_gpu.h"
#include "table/gpu/gpu_rows.h"
#include "table/gpu/gpu_updater.h"
#include "table/table_snapshots.h"

namespace recmill::store {

/// Tables whose rows are slots, which somebody else fills and empties.
struct GpuSlotTables {
  std::vector<table::EmbeddingTable> tables;   // without rows
  std::vector<table::GpuRows> rows;            // [tables]; several may have the same memory
  std::vector<const i64*> row_of_slot;         // [tables]: table::GpuUpdatedTable
  std::vector<const table::SlotNames*> names;  // [tables]
};

class GpuStore final : public StoreOnGpu {
 public:
  /// Allocates all tables with their initial rows, and compiles what they need. `places` [tables]:
  /// where rows are stored; empty: all in the GPU's own memory.  Fails as
  /// table::EmbeddingTable::create and `compile`, and where memory is short. The pool outlives the
  /// store.
  static Result<std::unique_ptr<GpuStore>> create(ModelSpec model, uint64_t seed,
                                                  std::shared_ptr<Gpu> gpu,
                                                  const GpuStoreKernels& kernels, ThreadPool& pool,
                                                  std::span<const RowsAt> places = {});
  /// `model` has the tables of `slots`. There is no snapshot of these, and no rows are written.
  /// What the store enqueues is on `stream`; both it and the pool outlive the store.
  static Result<std::unique_ptr<GpuStore>> over_slots(ModelSpec model, GpuSlotTables slots,
                                                      std::shared_ptr<Gpu> gpu,
                                                      const GpuStoreKernels& kernels,
                                                      ThreadPool& pool, GpuStream& stream);
  ~GpuStore() override;

  Gpu& gpu() override { return *gpu_; }
  GpuStream& stream() override { return stream_; }
  GpuExchange* exchange() override { return nullptr; }

  /// The host's tables; of the GPU, and pinned for it: gpu_store_need().
  /// The batch holds all slices. Bags that were made on the same GPU (SparseBatch::on_gpu) are read
  /// there, and the host needs no rows of them.
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

  GpuStore(ModelSpec model, GpuSlotTables tables, std::span<const RowsAt> places,
           std::shared_ptr<Gpu> gpu, ThreadPool& pool, GpuStream* stream);
  Status open_streams();
  Status load_all(const GpuStoreKernels& kernels);
  Status load_pool(const GpuStoreSources& sources, const GpuStoreKernels& kernels);
  Status load_finder(const GpuStoreSources& sources,
                     const kernels::codegen::CompileForGpu& compile);
  Status load_updater(const GpuStoreSources& sources,
                      const kernels::codegen::CompileForGpu& compile);
  Result<std::vector<GpuKernel>> load(std::span<const kernels::codegen::GpuSource> sources,
                                      const kernels::codegen::CompileForGpu& compile);
  int64_t rows_out(size_t feature, const SparseBatch& sparse) const;
  Result<std::vector<BagsOnGpu>> bags_on_gpu(const SparseBatch& sparse, Work& work);
  std::vector<kernels::GpuTableLookups> table_lookups(std::span<const Work* const> batches) const;
  Result<std::unique_ptr<Work>> take_work();
  Status stage(std::span<const Work* const> batches, Work& work) const;
  Status send_to_find(Work& work, GpuStream& stream) const;
  Status lookup_to_host(Work& work, Output output);
  Status pool_rows(Work& work, Output output);
  Status find_rows(Work& work);
  Result<std::vector<kernels::gpu::Gradients>> send_gradients(std::span<const Update> updates);
  std::vector<std::vector<kernels::gpu::Gradients>> by_table(
      std::span<const kernels::gpu::Gradients> of_updates) const;
  Result<Work*> found_work(std::span<const Update> updates);
  /// Whether the GPU changes rows of the host's table itself, all of them or some.
  bool is_in_place(size_t table) const { return rows_[table].is_where(tables_[table]); }
  Status count_found(const kernels::GpuDistinctRowsFinder::Found& found,
                     std::span<const Update> updates);
  Result<table::TableSnapshots::Change> before_change(std::span<const Update> updates);
  Status count_rows() const;
  Status download();
  Status upload_written();

  const ModelSpec model_;
  std::vector<std::vector<size_t>> features_of_;  // by table: its features, ascending
  std::vector<table::EmbeddingTable> tables_;     // of the host
  table::TableSnapshots snapshots_;               // of them
  ThreadPool& pool_;

  const std::vector<RowsAt> places_;  // [tables]
  const std::shared_ptr<Gpu> gpu_;
  std::unique_ptr<FarRows> far_;
  kernels::codegen::CompiledGpuPool fused_pool_;
  std::vector<kernels::codegen::GpuCode> codes_;            // beside it
  std::unique_ptr<kernels::GpuDistinctRowsFinder> finder_;  // its run() guarded by mutex_
  std::unique_ptr<table::GpuUpdater> updater_;
  int most_slices_ = 0;  // that the updater is for

  std::mutex prepare_mutex_;                   // guards what follows
  std::deque<std::unique_ptr<Work>> resting_;  // memory to be used again
  int64_t next_number_ = 0;

  GpuStream copies_;

  // Guards all below, and the tables of the host: evaluations may look up while training does.
  mutable std::mutex mutex_;
  GpuStream own_stream_;
  GpuStream& stream_;                                 // own_stream_, or somebody else's
  GpuStream finds_;                                   // beside it
  int64_t found_of_ = -1;                             // Work::number
  std::vector<table::GpuRows> rows_;                  // [tables]
  const std::vector<const i64*> row_of_slot_;         // [tables], or none
  const std::vector<const table::SlotNames*> names_;  // [tables], or none
  std::vector<char> written_;                         // [tables]: the host has newer rows
  PinnedBuffer staging_;
  GpuBuffer outputs_, gradients_;
  PinnedBuffer outputs_of_host_, gradients_of_host_;
  GpuEvent gradients_sent_;       // from the host
  std::unique_ptr<Work> merged_;  // of several batches in one iteration

  PinnedBuffer counted_;  // [tables] int64_t: distinct rows of the last update
  mutable GpuEvent counted_there_;
  mutable bool to_count_ = false;  // they are not in distinct_rows_ yet
  mutable int64_t distinct_rows_ = 0;
  mutable FarCounts far_counts_, last_far_;  // the latter of the last update
  std::atomic<int64_t> lookups_{0};
};

}  // namespace recmill::store
