// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/thread_pool.h"
#include "lookahead_plan/slot_tables.h"
#include "schema/table_spec.h"
#include "store/cached/slot_store.h"
#include "store/cached/slots.h"
#include "store/tables/local_store.h"

namespace recmill::store {

/// In the memory of the host.
class HostSlotStore final : public SlotStore {
 public:
  /// Bytes that a slot of each slot table takes [slot tables].
  static std::vector<int64_t> slot_bytes(const ModelSpec& model, const SlotTables& tables);

  /// Makes them with create().
  static MakeSlots maker(uint64_t seed, ThreadPool& pool, StoreKernels kernels);
  /// `tables` and `pool` outlive it. `kernels`: for the inner store; those by table are left out.
  /// Fails where memory is short.
  static Result<std::unique_ptr<SlotStore>> create(const ModelSpec& model, const SlotTables& tables,
                                                   uint64_t seed, const CacheSize& size,
                                                   ThreadPool& pool, StoreKernels kernels);

  EmbeddingStore& store() override { return store_; }
  SlotStates& states() override { return *slots_; }
  Status begin(int64_t) override { return {}; }
  Status end(int64_t) override { return {}; }
  Status fill(int64_t step, std::span<const RowInSlot> rows, const RowRecords& records) override;
  Status wait_for_end(int64_t) override { return {}; }
  Status read(std::span<const RowInSlot> rows, RowRecords& records) override;
  Status write(std::span<const RowInSlot> rows, const RowRecords& records) override;

 private:
  HostSlotStore(std::unique_ptr<RankTables> of, std::unique_ptr<Slots> slots)
      : slots_(std::move(slots)), store_(std::move(of)) {}

  const std::unique_ptr<Slots> slots_;
  LocalStore store_;
};

}  // namespace recmill::store
