// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "batch/sparse_batch.h"
#include "bench/placement/frozen_shapes.h"
#include "device/thread_pool.h"
#include "schema/table_spec.h"
#include "step/data/batch_source.h"

namespace recmill::bench {

/// A rank's samples of every batch of a stream, which all ways go through.
struct CachedStream {
  ModelSpec model;
  int rank = 0, ranks = 1;
  int slices = 8;
  std::vector<SparseBatch> batches;

  /// Draws `count` batches of `samples` samples at each rank.
  static CachedStream make(const FrozenShape& shape, double zipf, int64_t count, int64_t samples,
                           int rank, int ranks, ThreadPool& pool);
};

/// Hands them out one after the other, to be trained.
class CachedStreamSource final : public train::BatchSource {
 public:
  explicit CachedStreamSource(const CachedStream& stream) : stream_(stream) {}
  Result<bool> next(train::RankBatch& batch) override;

 private:
  const CachedStream& stream_;
  int64_t next_ = 0;
};

}  // namespace recmill::bench
