// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "base/files.h"
#include "base/random.h"
#include "base/status.h"
#include "batch/column_batch.h"
#include "batch/sparse_batch.h"
#include "device/thread_pool.h"
#include "run/folder/progress.h"
#include "run/resolved_run.h"
#include "run/training_ids.h"

namespace recmill::train {

/// Rows of the first batch, and of one after `batch`: as many as it takes for so many raw ids.
inline constexpr int64_t kFirstBatchRows = 64;
int64_t rows_of_next_batch(const ColumnBatch& batch);

/// What training keeps of rows (train.negative_keep, first epoch).
class KeptRows {
 public:
  /// The run outlives it.
  explicit KeptRows(const ResolvedRun& run);
  /// Of those that were read from `row` on. Valid until the next call.
  const ColumnBatch& of(const ColumnBatch& read, int64_t row);

 private:
  const ResolvedRun& run_;
  const Random sampling_;
  ColumnBatch kept_;
};

/// The lookups of a run's training data, for who counts them: through the run's own reader,
/// down-sampling and preprocessing, in the order of its first epoch.
class TrainingLookups {
 public:
  /// The run and the pool outlive it.
  TrainingLookups(const ResolvedRun& run, ThreadPool& pool);

  Status open(Files& files);
  int64_t rows() const { return data_.rows; }

  /// Hands the samples of rows [begin, end) that training keeps to `visit`, a batch at a time.
  /// Where ids are numbered as they come, those before are seen as well.
  Status visit(int64_t begin, int64_t end, Progress& progress,
               const std::function<void(const SparseBatch&)>& visit);

  /// Numbers the ids of all rows, where the run has dictionaries: visits after this see these full.
  Status fill_dictionaries(Progress& progress);
  const preprocess::Preprocessor& preprocessor() const { return *data_.preprocessor; }
  const DataSchema& schema() const { return data_.reader->schema(); }
  /// As visit(), with the columns as they were read, whose `first` is the row of sample 0.
  using Visit = std::function<Status(const ColumnBatch& columns, const SparseBatch& sparse)>;
  Status visit_columns(int64_t begin, int64_t end, Progress& progress, const Visit& visit);

 private:
  bool numbers_ids() const { return !full_ && !data_.preprocessor->versions().empty(); }

  const ResolvedRun& run_;
  ThreadPool& pool_;
  TrainingIds data_;
  bool full_ = false;  // the dictionaries
  KeptRows kept_;
  ColumnBatch columns_;
  DenseBatch dense_;
  SparseBatch sparse_;
};

}  // namespace recmill::train
