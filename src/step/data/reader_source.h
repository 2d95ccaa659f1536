// SPDX-License-Identifier: Apache-2.0
// Reads and preprocesses on the thread that asks for batches.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "batch/column_batch.h"
#include "preprocess/run/preprocessor.h"
#include "reader/reader.h"
#include "step/data/batch_schedule.h"
#include "step/data/batch_source.h"
#include "step/data/rank_samples.h"

namespace recmill::train {

/// Refuses a position beyond the data, which may have become another since.
Status check_position(const StreamPosition& position, reader::Reader& train);

/// One epoch of the reader's seeded order after the other. A rank reads only its own samples,
/// unless a dictionary or down-sampling needs to see all.
class ReaderSource final : public BatchSource {
 public:
  /// `eval` may be null: no evaluations. Starts at `start`; the preprocessor's state is that of
  /// `start` already. All referenced objects outlive the source.
  ReaderSource(const BatchSchedule& schedule, reader::Reader& train, reader::Reader* eval,
               preprocess::Preprocessor& preprocessor, const StreamPosition& start);

  Result<bool> next(RankBatch& batch) override;

 private:
  Result<bool> read_training(RankBatch& batch);
  Status nothing_kept(int64_t rows) const;
  Status gather_kept(int64_t rows, int64_t& row);

  const BatchSchedule schedule_;
  reader::Reader& train_;
  RankSamples samples_;
  EvaluationPass evaluation_;
  StreamPosition position_;
  bool evaluation_due_;
  ColumnBatch columns_;  // as read
  ColumnBatch kept_;     // after down-sampling, the batch under way
};

}  // namespace recmill::train
