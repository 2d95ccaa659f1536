// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "kernels/distinct_rows/distinct_rows.h"
#include "kernels/embedding_pool/fused_pool.h"
#include "lookahead_plan/slot_tables.h"
#include "store/cached/row_records.h"
#include "store/embedding_store.h"
#include "table/row_record.h"

namespace recmill::store {

/// Lookups of batches outside the stream: their rows come into memory of their own. Any threads.
class OutsideLookups {
 public:
  /// All outlive it. `records` [tables].
  OutsideLookups(const ModelSpec& model, const SlotTables& tables,
                 std::span<const table::RowRecord> records, uint64_t seed, ThreadPool& pool);

  /// Finds the distinct rows of the batch [tables].
  void prepare(const Batch& batch, std::vector<DistinctRows>& distinct);
  /// Fills in the records of `rows`, ascending, as they are now.
  using Fetch = std::function<Status(std::span<const RowInSlot> rows, RowRecords& records)>;
  Status look_up(const Batch& batch, std::span<const DistinctRows> distinct, const Fetch& fetch,
                 Output output, Stream& stream);

  int64_t lookups() const { return lookups_; }

 private:
  const ModelSpec& model_;
  const SlotTables& tables_;
  const std::span<const table::RowRecord> records_;
  const uint64_t seed_;
  ThreadPool& pool_;
  std::vector<std::vector<size_t>> features_of_;  // [tables]
  kernels::FusedPool fused_pool_;                 // of the model's features
  std::mutex mutex_;
  kernels::DistinctRowsFinder finder_;  // guarded by mutex_
  std::atomic<int64_t> lookups_{0};
};

}  // namespace recmill::store
