// SPDX-License-Identifier: Apache-2.0
#include "step/data_stage.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "batch/column_batch.h"
#include "comm/slice_tree.h"

namespace recmill::train {

bool training_is_over(const BatchSchedule& schedule, const StreamPosition& position) {
  return position.epoch >= schedule.epochs ||
         (schedule.iterations > 0 && position.iteration >= schedule.iterations);
}

bool evaluation_is_due(const BatchSchedule& schedule, const StreamPosition& position) {
  if (position.iteration == 0) return false;
  if (training_is_over(schedule, position)) return true;
  return schedule.evaluate_every > 0 ? position.iteration % schedule.evaluate_every == 0
                                     : position.row == 0;
}

bool is_kept(const Random& random, double negative_keep, float label, int64_t row) {
  return label > 0.5f || random.uniform64(static_cast<uint64_t>(row)) < negative_keep;
}

DataStage::DataStage(const BatchSchedule& schedule, reader::Reader& train, reader::Reader* eval,
                     preprocess::Preprocessor& preprocessor, store::EmbeddingStore& store,
                     Trainer* trainer, const StreamPosition& start, size_t queue)
    : schedule_(schedule),
      train_(train),
      eval_(eval),
      preprocessor_(preprocessor),
      store_(store),
      trainer_(trainer),
      position_(start),
      ready_(queue),
      used_(queue + 2),
      thread_([this] {
        if (const Status status = produce(); !status.ok()) ready_.push(status);
        ready_.close();
      }) {}

DataStage::~DataStage() {
  ready_.close();
  thread_.join();
}

Result<std::unique_ptr<RankBatch>> DataStage::next() {
  std::optional<Item> item = ready_.pop();
  if (!item) return std::unique_ptr<RankBatch>();
  return *std::move(item);
}

void DataStage::recycle(std::unique_ptr<RankBatch> batch) {
  batch->prepared.reset();
  batch->sent.reset();
  used_.push(std::move(batch));
}

std::unique_ptr<RankBatch> DataStage::blank() {
  if (auto used = used_.try_pop()) return *std::move(used);
  return std::make_unique<RankBatch>();
}

bool reads_whole_batches(const BatchSchedule& schedule,
                         const preprocess::Preprocessor& preprocessor) {
  return schedule.ranks > 1 && (!preprocessor.versions().empty() || schedule.negative_keep < 1.0);
}

Status DataStage::produce() {
  // A checkpoint stands between a batch and its evaluation: a resumed run begins with that one.
  bool due = evaluation_is_due(schedule_, position_);
  while (!stopped_) {
    if (due && eval_ != nullptr) RECMILL_RETURN_IF_ERROR(produce_evaluation());
    if (training_is_over(schedule_, position_)) break;
    RECMILL_RETURN_IF_ERROR(produce_training());
    due = evaluation_is_due(schedule_, position_);
  }
  return {};
}

Status DataStage::produce_training() {
  RECMILL_ASSIGN_OR_RETURN(auto batch, read_training());
  if (batch == nullptr) return {};  // the rest of the epoch was sampled away
  if (!ready_.push(std::move(batch))) stopped_ = true;
  return {};
}

Result<std::unique_ptr<RankBatch>> DataStage::read_training() {
  RECMILL_ASSIGN_OR_RETURN(const int64_t rows, train_.rows());
  if (rows == 0) return Status::Failed("data.train: there is no row in it");
  auto batch = blank();
  batch->purpose = store::Purpose::train;
  batch->before = position_;
  int64_t row = position_.row;
  if (schedule_.negative_keep < 1.0) {
    RECMILL_RETURN_IF_ERROR(gather_kept(rows, row));
    batch->cut = {kept_.samples, schedule_.slices};
  } else {
    batch->cut = {std::min(schedule_.batch_size, rows - row), schedule_.slices};
    row += batch->cut.samples;
  }
  const bool any = batch->cut.samples > 0;
  const bool ends_epoch = row == rows;
  const int64_t first = position_.row, epoch = position_.epoch;
  position_ = {position_.iteration + (any ? 1 : 0), epoch + (ends_epoch ? 1 : 0),
               ends_epoch ? 0 : row};
  if (!any && position_.iteration == 0) return nothing_kept(rows);
  if (!any) return std::unique_ptr<RankBatch>();
  batch->after = position_;
  batch->last_of_pass = ends_epoch;
  batch->ends_training = training_is_over(schedule_, position_);
  const SliceRange own = slices_of_rank(schedule_.rank, schedule_.ranks, schedule_.slices);
  batch->first_slice = own.begin;
  batch->end_slice = own.end;
  if (schedule_.negative_keep < 1.0) {
    RECMILL_RETURN_IF_ERROR(finish(kept_, reads_whole_batches(schedule_, preprocessor_), *batch));
  } else {
    RECMILL_RETURN_IF_ERROR(fill(train_, epoch, first, batch->cut.samples, *batch));
  }
  return batch;
}

Status DataStage::nothing_kept(int64_t rows) const {
  return Status::Failed("train.negative_keep: of the " + std::to_string(rows) +
                        " training rows, none of which is positive, none was kept to train on");
}

// Reads on from `row` until a batch of kept rows is together or the epoch ends; `row` becomes the
// position after the last row used.
Status DataStage::gather_kept(int64_t rows, int64_t& row) {
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

Status DataStage::produce_evaluation() {
  RECMILL_ASSIGN_OR_RETURN(const int64_t rows, eval_->rows());
  if (rows == 0) return Status::Failed("data.eval: there is no row in it");
  const SliceRange own = slices_of_rank(schedule_.rank, schedule_.ranks, schedule_.slices);
  for (int64_t first = 0; first < rows && !stopped_; first += schedule_.eval_batch_size) {
    auto batch = blank();
    batch->purpose = schedule_.serves ? store::Purpose::serve : store::Purpose::evaluate;
    batch->before = batch->after = position_;
    batch->cut = {std::min(schedule_.eval_batch_size, rows - first), schedule_.slices};
    batch->first_slice = own.begin;
    batch->end_slice = own.end;
    batch->last_of_pass = first + schedule_.eval_batch_size >= rows;
    batch->ends_training = batch->last_of_pass && training_is_over(schedule_, position_);
    RECMILL_RETURN_IF_ERROR(fill(*eval_, 0, first, batch->cut.samples, *batch));
    if (!ready_.push(std::move(batch))) stopped_ = true;
  }
  return {};
}

Status DataStage::fill(reader::Reader& reader, int64_t epoch, int64_t first, int64_t samples,
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
  return finish(columns_, whole, batch);
}

// Of samples [begin, end) of those read, which are this rank's: where they are from, and which lack
// a label. These are negatives to the loss, which nobody asks for then.
void DataStage::note_rows(int64_t begin, int64_t end, RankBatch& batch) {
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

// Preprocesses the columns, keeps this rank's samples, and lets store and trainer look at them
// unless they are served.
Status DataStage::finish(const ColumnBatch& columns, bool whole, RankBatch& batch) {
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
  if (batch.purpose == store::Purpose::serve) return {};
  RECMILL_RETURN_IF_ERROR(prepare(store_, batch));
  if (trainer_ == nullptr) return {};
  RECMILL_ASSIGN_OR_RETURN(batch.sent, trainer_->send_ahead(batch.dense));
  return {};
}

}  // namespace recmill::train
