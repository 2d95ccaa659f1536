// SPDX-License-Identifier: Apache-2.0
// A rank's samples of a global batch: read and preprocessed, for sources of batches.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "batch/column_batch.h"
#include "batch/sparse_batch.h"
#include "preprocess/run/preprocessor.h"
#include "reader/reader.h"
#include "step/data/batch_schedule.h"
#include "step/rank_batch.h"

namespace recmill::train {

/// Whether each rank reads and preprocesses all samples of a batch, not only its own slices':
/// because dictionaries grow, or samples are left out.
bool reads_whole_batches(const BatchSchedule& schedule,
                         const preprocess::Preprocessor& preprocessor);

class RankSamples {
 public:
  /// The preprocessor outlives it.
  RankSamples(const BatchSchedule& schedule, preprocess::Preprocessor& preprocessor)
      : schedule_(schedule), preprocessor_(preprocessor) {}

  /// Sets the slices of the rank.
  void cut(int64_t samples, RankBatch& batch) const;
  /// Of the batch's samples, which are the reader's from row `first` of `epoch` on and from
  /// position `place` of the order of training on, those of the rank.
  Status fill(reader::Reader& reader, int64_t epoch, int64_t first, int64_t place,
              RankBatch& batch);
  /// Of columns with all samples of the batch, `whole`, or with those of the rank.
  Status preprocess(const ColumnBatch& columns, bool whole, RankBatch& batch);
  bool reads_whole() const { return reads_whole_batches(schedule_, preprocessor_); }

 private:
  void note_rows(int64_t begin, int64_t end, RankBatch& batch);

  const BatchSchedule schedule_;
  preprocess::Preprocessor& preprocessor_;
  ColumnBatch columns_;     // as read
  DenseBatch whole_dense_;  // when this rank must see the whole batch
  SparseBatch whole_sparse_;
};

/// The batches of an evaluation, in the order of the data.
class EvaluationPass {
 public:
  /// `eval`, which may be null, outlives it.
  EvaluationPass(const BatchSchedule& schedule, reader::Reader* eval)
      : schedule_(schedule), eval_(schedule.evaluates ? eval : nullptr) {}

  bool has_rows() const { return eval_ != nullptr; }
  bool is_under_way() const { return evaluated_ > 0; }
  /// The next batch of it, which is after `position` in the stream: of the first `limit` rows, 0:
  /// of all. The last one has last_of_pass set.
  Status read(const StreamPosition& position, int64_t limit, RankSamples& samples,
              RankBatch& batch);

 private:
  const BatchSchedule schedule_;
  reader::Reader* const eval_;
  int64_t evaluated_ = 0;  // rows of the evaluation under way
};

}  // namespace recmill::train
