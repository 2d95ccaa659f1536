// SPDX-License-Identifier: Apache-2.0
#include "step/data/reader_source.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "comm/slice_tree.h"

namespace recmill::train {

bool reads_whole_batches(const BatchSchedule& schedule,
                         const preprocess::Preprocessor& preprocessor) {
  return schedule.ranks > 1 && (!preprocessor.versions().empty() || schedule.negative_keep < 1.0);
}

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
      eval_(schedule.evaluates ? eval : nullptr),
      preprocessor_(preprocessor),
      position_(start),
      // A checkpoint is between a batch and its evaluation: a resumed run begins with that one.
      evaluation_due_(evaluation_is_due(schedule, start)) {}

Result<bool> ReaderSource::next(RankBatch& batch) {
  while (true) {
    if (evaluation_due_ && eval_ != nullptr) {
      RECMILL_RETURN_IF_ERROR(read_evaluation(batch));
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
    batch.cut = {kept_.samples, schedule_.slices};
  } else {
    batch.cut = {std::min(schedule_.batch_size, rows - row), schedule_.slices};
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
  const SliceRange own = slices_of_rank(schedule_.rank, schedule_.ranks, schedule_.slices);
  batch.first_slice = own.begin;
  batch.end_slice = own.end;
  RECMILL_RETURN_IF_ERROR(
      samples_negatives ? preprocess(kept_, reads_whole_batches(schedule_, preprocessor_), batch)
                        : fill(train_, before.epoch, before.row, batch.cut.samples, batch));
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

Status ReaderSource::read_evaluation(RankBatch& batch) {
  RECMILL_ASSIGN_OR_RETURN(const int64_t rows, eval_->rows());
  if (rows == 0) return Status::Failed("data.eval: there is no row in it");
  const SliceRange own = slices_of_rank(schedule_.rank, schedule_.ranks, schedule_.slices);
  const int64_t first = evaluated_;
  batch.purpose = schedule_.serves ? store::Purpose::serve : store::Purpose::evaluate;
  batch.before = batch.after = position_;
  batch.cut = {std::min(schedule_.eval_batch_size, rows - first), schedule_.slices};
  batch.first_slice = own.begin;
  batch.end_slice = own.end;
  batch.last_of_pass = first + schedule_.eval_batch_size >= rows;
  batch.ends_training = batch.last_of_pass && training_is_over(schedule_, position_);
  evaluated_ = batch.last_of_pass ? 0 : first + batch.cut.samples;
  evaluation_due_ = !batch.last_of_pass;
  return fill(*eval_, 0, first, batch.cut.samples, batch);
}

Status ReaderSource::fill(reader::Reader& reader, int64_t epoch, int64_t first, int64_t samples,
                          RankBatch& batch) {
  const bool whole = reads_whole_batches(schedule_, preprocessor_);
  const int64_t begin = whole ? 0 : batch.cut.begin(batch.first_slice);
  const int64_t end = whole ? samples : batch.cut.begin(batch.end_slice);
  RECMILL_RETURN_IF_ERROR(reader.read(epoch, first + begin, end - begin, columns_));
  if (columns_.samples != end - begin) {
    return Status::Failed("the data ended before its last row: it changed while it was read");
  }
  if (batch.purpose != store::Purpose::train) {
    note_rows(batch.cut.begin(batch.first_slice) - begin, batch.cut.begin(batch.end_slice) - begin,
              batch);
  }
  return preprocess(columns_, whole, batch);
}

// Of samples [begin, end) of those read, which are this rank's: where they are from, and which lack
// a label. These are negatives to the loss, which nobody asks for then.
void ReaderSource::note_rows(int64_t begin, int64_t end, RankBatch& batch) {
  copy_samples(columns_.keys, begin, end, batch.keys);
  batch.unlabelled.clear();
  for (size_t i = 0; i < columns_.labels.size(); ++i) {
    if (!std::isnan(columns_.labels[i])) continue;
    columns_.labels[i] = 0.0f;
    const auto at = static_cast<int64_t>(i) - begin;
    if (at < 0 || at >= end - begin) continue;
    batch.unlabelled.resize(static_cast<size_t>(end - begin));
    batch.unlabelled[static_cast<size_t>(at)] = 1;
  }
}

// Preprocesses the columns and keeps this rank's samples.
Status ReaderSource::preprocess(const ColumnBatch& columns, bool whole, RankBatch& batch) {
  const bool training = batch.purpose == store::Purpose::train;
  DenseBatch& dense = whole ? whole_dense_ : batch.dense;
  SparseBatch& sparse = whole ? whole_sparse_ : batch.sparse;
  if (training) {
    if (batch.before.epoch > 0) preprocessor_.stop_counting();
    RECMILL_RETURN_IF_ERROR(preprocessor_.train(columns, dense, sparse));
  } else {
    // This stage runs in the order of the stream: the dictionaries are as the evaluation finds
    // them.
    RECMILL_RETURN_IF_ERROR(
        preprocessor_.evaluate(columns, preprocessor_.versions(), dense, sparse));
  }
  if (whole) {
    const int64_t begin = batch.cut.begin(batch.first_slice);
    const int64_t end = batch.cut.begin(batch.end_slice);
    copy_samples(whole_dense_, begin, end, batch.dense);
    copy_samples(whole_sparse_, begin, end, batch.sparse);
  }
  batch.dictionaries = preprocessor_.versions();
  return {};
}

}  // namespace recmill::train
