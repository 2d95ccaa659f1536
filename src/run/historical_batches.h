// SPDX-License-Identifier: Apache-2.0
// Batches of a configuration's own training data, for what is measured on them: tuning and
// `bench kernels`.
#pragma once

#include <cstdint>

#include "base/files.h"
#include "base/status.h"
#include "batch/column_batch.h"
#include "batch/sparse_batch.h"
#include "device/thread_pool.h"
#include "run/resolved_run.h"
#include "run/training_ids.h"

namespace recmill::train {

/// Consecutive batches of any sizes, preprocessed as training would. A function of (run, seed, the
/// sizes asked for so far). Different seeds give different batches: synthetic rows are drawn anew;
/// other data is read in another order (where the configuration shuffles), from another row on.
class HistoricalBatches {
 public:
  /// `pool` and `files` outlive it. Opens the data, which may read it once (an index).
  static Result<HistoricalBatches> open(const ResolvedRun& run, uint64_t seed, ThreadPool& pool,
                                        Files& files);

  /// Replaces `batch` (whose memory is used again) by the next `samples` >= 0 training samples. At
  /// the end of the data it goes on from the beginning, as in the next epoch.
  Status next(int64_t samples, SparseBatch& batch);

  int64_t rows() const { return data_.rows; }

 private:
  HistoricalBatches() = default;
  Status read(int64_t samples);

  TrainingIds data_;
  int64_t epoch_ = 0, row_ = 0;  // the next row's
  ColumnBatch columns_, piece_;
  DenseBatch dense_;
};

/// Size of batch `index` of the sequence that `seed` stands for: one of tune.batch_sizes, or
/// train.batch_size where that list is empty. Eight batches that follow each other have one from
/// each eighth of the list in ascending order, drawn evenly: few batches are like all of them.
int64_t tune_batch_size(const RunOptions& options, uint64_t seed, int64_t index);

}  // namespace recmill::train
