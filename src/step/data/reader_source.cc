// SPDX-License-Identifier: Apache-2.0
#include "step/data/reader_source.h"

#include <algorithm>
#include <string>
#include <vector>

namespace recmill::train {

Status check_position(const StreamPosition& position, reader::Reader& train) {
  RECMILL_ASSIGN_OR_RETURN(const int64_t there, train.rows());
  if (position.row == 0 || position.row < there) return {};
  return Status::Failed("training was at row " + std::to_string(position.row) +
                        " of the data, which has " + std::to_string(there) + " rows");
}

ReaderSource::ReaderSource(const BatchSchedule& schedule, reader::Reader& train,
                           reader::Reader* eval, preprocess::Preprocessor& preprocessor,
                           const StreamPosition& start)
    : schedule_(schedule),
      train_(train),
      samples_(schedule, preprocessor),
      evaluation_(schedule, eval),
      position_(start),
      // A checkpoint is between a batch and its evaluation: a resumed run begins with that one.
      evaluation_due_(evaluation_is_due(schedule, start)) {}

Result<bool> ReaderSource::next(RankBatch& batch) {
  while (true) {
    if (evaluation_due_ && evaluation_.has_rows()) {
      RECMILL_RETURN_IF_ERROR(evaluation_.read(position_, /*limit=*/0, samples_, batch));
      evaluation_due_ = !batch.last_of_pass;
      return true;
    }
    if (training_is_over(schedule_, position_)) return false;
    RECMILL_ASSIGN_OR_RETURN(const bool any, read_training(batch));
    evaluation_due_ = evaluation_is_due(schedule_, position_);
    if (any) return true;  // else the rest of the epoch was sampled away
  }
}

Result<bool> ReaderSource::read_training(RankBatch& batch) {
  RECMILL_ASSIGN_OR_RETURN(const int64_t rows, train_.rows());
  if (rows == 0) return Status::Failed("data.train: there is no row in it");
  const bool samples_negatives = schedule_.negative_keep < 1.0;
  const StreamPosition before = position_;
  int64_t row = before.row;
  if (samples_negatives) {
    RECMILL_RETURN_IF_ERROR(gather_kept(rows, row));
    samples_.cut(kept_.samples, batch);
  } else {
    samples_.cut(std::min(schedule_.batch_size, rows - row), batch);
    row += batch.cut.samples;
  }
  const bool any = batch.cut.samples > 0;
  const bool ends_epoch = row == rows;
  position_ = {before.iteration + (any ? 1 : 0), before.epoch + (ends_epoch ? 1 : 0),
               ends_epoch ? 0 : row};
  if (!any && position_.iteration == 0) return nothing_kept(rows);
  if (!any) return false;
  batch.purpose = store::Purpose::train;
  batch.before = before;
  batch.after = position_;
  batch.last_of_pass = ends_epoch;
  batch.ends_training = training_is_over(schedule_, position_);
  RECMILL_RETURN_IF_ERROR(samples_negatives
                              ? samples_.preprocess(kept_, samples_.reads_whole(), batch)
                              : samples_.fill(train_, before.epoch, before.row, before.row, batch));
  return true;
}

Status ReaderSource::nothing_kept(int64_t rows) const {
  return Status::Failed("train.negative_keep: of the " + std::to_string(rows) +
                        " training rows, none of which is positive, none was kept to train on");
}

// Reads on from `row` until a batch of kept rows is together or the epoch ends; `row` becomes the
// position after the last row used.
Status ReaderSource::gather_kept(int64_t rows, int64_t& row) {
  const Random random(schedule_.seed, Purpose::down_sampling, position_.epoch);
  clear_samples(kept_);
  kept_.first = row;
  std::vector<int64_t> which;
  while (row < rows && kept_.samples < schedule_.batch_size) {
    RECMILL_RETURN_IF_ERROR(train_.read(position_.epoch, row, schedule_.batch_size, columns_));
    which.clear();
    int64_t used = 0;
    const int64_t missing = schedule_.batch_size - kept_.samples;
    for (; used < columns_.samples && static_cast<int64_t>(which.size()) < missing; ++used) {
      if (is_kept(random, schedule_.negative_keep, columns_.labels[used], row + used))
        which.push_back(used);
    }
    if (used == 0) return Status::Failed("the training data ended before its last row");
    append_samples(columns_, which, kept_);
    row += used;
  }
  return {};
}

}  // namespace recmill::train
