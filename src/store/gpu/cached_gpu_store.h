// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "device/thread_pool.h"
#include "kernels/row_copy/gpu_row_copier.h"
#include "store/cached/cached_store.h"
#include "store/gpu/gpu_slot_store.h"
#include "store/gpu/store_on_gpu.h"
#include "table/home/row_home.h"

namespace recmill::store {

/// Rows are stored at a home in the host's memory, and those that batches to come use in slots of
/// the GPU's: tables larger than that train there. One rank.
class CachedGpuStore final : public StoreOnGpu, public HomeCuts {
 public:
  /// `home`: as CachedStore. The pool outlives the store. Fails as `compile`.
  static Result<std::unique_ptr<CachedGpuStore>> create(ModelSpec model, uint64_t seed,
                                                        const CacheHomeRows& home,
                                                        std::shared_ptr<Gpu> gpu,
                                                        const GpuStoreKernels& kernels,
                                                        ThreadPool& pool);

  Gpu& gpu() override { return *gpu_; }
  GpuStream& stream() override { return stream_; }
  GpuExchange* exchange() override { return nullptr; }

  Result<std::unique_ptr<Prepared>> prepare(const Batch& batch) override {
    return cached_->prepare(batch);
  }
  Status lookup(Prepared& prepared, Output output, Stream& stream) override;
  Status update(std::span<const Update> updates, const Step& step, Stream& stream) override {
    return cached_->update(updates, step, stream);
  }
  Status settle() override { return cached_->settle(); }
  std::unique_ptr<RowSnapshot> snapshot(int64_t kept_bytes) override {
    return cached_->snapshot(kept_bytes);
  }
  Result<ComingImage> cut() override { return cached_->cut(); }
  table::Extent extent(int table) const override { return cached_->extent(table); }
  Status write_rows(const RowBlock& block) override { return cached_->write_rows(block); }
  StoreStats stats() const override { return cached_->stats(); }

 private:
  CachedGpuStore(ModelSpec model, std::shared_ptr<Gpu> gpu, ThreadPool& pool)
      : model_(std::move(model)), gpu_(std::move(gpu)), pool_(pool) {}
  Status lookup_outside(Prepared& prepared, Output output);

  const ModelSpec model_;
  const std::shared_ptr<Gpu> gpu_;
  ThreadPool& pool_;
  GpuStream stream_;
  std::optional<kernels::GpuRowCopier> copier_;
  std::mutex outside_;  // guards what is of batches outside the stream:
  PinnedBuffer outputs_of_host_;
  GpuBuffer outputs_;
  std::unique_ptr<CachedStore> cached_;  // last: its work is on the stream
};

}  // namespace recmill::store
