// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/gpu/gpu.h"
#include "device/gpu/staged_arrays.h"
#include "device/thread_pool.h"
#include "kernels/row_copy/gpu_record_copier.h"
#include "lookahead_plan/slot_tables.h"
#include "schema/table_spec.h"
#include "store/cached/slot_store.h"
#include "store/gpu/gpu_store.h"

namespace recmill::store {

/// Slots in the memory of a GPU. Rows come and leave through pinned memory on streams of their own,
/// beside what the GPU trains: their records in one copy, and where they belong in another one.
class GpuSlotStore final : public SlotStore {
 public:
  /// Bytes of the GPU's memory that a slot of each slot table takes [slot tables].
  static std::vector<int64_t> slot_bytes(const ModelSpec& model, const SlotTables& tables);
  /// What rows of one step take on their way, of so many in each table at most, in both directions.
  static GpuBytes need(const ModelSpec& model, std::span<const int64_t> rows);

  /// Makes them over the kernels. The pool and the stream, on which the inner store enqueues,
  /// outlive what is made. Fails as GpuStore::over_slots(), and where the GPU's memory is short.
  static MakeSlots maker(uint64_t seed, std::shared_ptr<Gpu> gpu, GpuStoreKernels kernels,
                         ThreadPool& pool, GpuStream& stream);

  EmbeddingStore& store() override { return *store_; }
  SlotStates& states() override { return states_; }
  Status begin(int64_t step) override { return stream_.wait_for(filled_[at(step)]); }
  Status end(int64_t step) override { return ended_[at(step)].record(stream_); }
  Status fill(int64_t step, std::span<const RowInSlot> rows, const RowRecords& records) override;
  Status wait_for_end(int64_t step) override { return ended_[at(step)].synchronize(kPause); }
  Status read(std::span<const RowInSlot> rows, RowRecords& records) override;
  Status write(std::span<const RowInSlot> rows, const RowRecords& records) override;

 private:
  // A mover waits for a GPU most of the time: training has the core.
  static constexpr std::chrono::microseconds kPause{20};
  /// Rows on their way in one direction; its memory is used again.
  struct Transfer {
    GpuStream stream;
    PinnedBuffer records_of_host;
    GpuBuffer records;
    StagedArrays arrays;  // of lists
    std::vector<kernels::gpu::RecordList> lists;
    GpuEvent used;  // to the end
  };

  GpuSlotStore(const ModelSpec& model, const SlotTables& tables, uint64_t seed,
               const CacheSize& size, std::shared_ptr<Gpu> gpu, GpuStream& stream);
  Status open();
  Status make_store(ModelSpec model, uint64_t seed, const CacheSize& size,
                    const GpuStoreKernels& kernels, ThreadPool& pool);
  size_t at(int64_t step) const { return static_cast<size_t>(step) % filled_.size(); }
  Status stage(std::span<const RowInSlot> rows, const RowRecords& records, Transfer& transfer);
  Status send(std::span<const RowInSlot> rows, const RowRecords& records);

  const SlotTables& tables_;
  const std::vector<table::RowRecord> records_;  // [slot tables]
  SlotStates states_;
  const std::shared_ptr<Gpu> gpu_;
  GpuStream& stream_;
  std::vector<table::GpuRows> rows_;    // [slot tables]
  std::vector<GpuBuffer> row_of_slot_;  // [slot tables]: int64_t [slots], of 16-bit rows
  std::unique_ptr<kernels::GpuRecordCopier> copier_;
  Transfer in_, out_;
  // By step, for as many as may be under way.
  std::vector<GpuEvent> filled_, ended_;
  std::unique_ptr<GpuStore> store_;  // last: its work reads what is above
};

}  // namespace recmill::store
