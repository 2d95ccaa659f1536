// SPDX-License-Identifier: Apache-2.0
#include "step/data/rank_samples.h"

#include <algorithm>
#include <cmath>

#include "comm/slice_tree.h"

namespace recmill::train {

bool reads_whole_batches(const BatchSchedule& schedule,
                         const preprocess::Preprocessor& preprocessor) {
  const bool grows = schedule.dictionaries_grow && !preprocessor.versions().empty();
  return schedule.ranks > 1 && (grows || schedule.negative_keep < 1.0);
}

void RankSamples::cut(int64_t samples, RankBatch& batch) const {
  const SliceRange own = slices_of_rank(schedule_.rank, schedule_.ranks, schedule_.slices);
  batch.cut = {samples, schedule_.slices};
  batch.first_slice = own.begin;
  batch.end_slice = own.end;
}

Status RankSamples::fill(reader::Reader& reader, int64_t epoch, int64_t first, int64_t place,
                         RankBatch& batch) {
  const bool whole = reads_whole();
  const int64_t begin = whole ? 0 : batch.cut.begin(batch.first_slice);
  const int64_t end = whole ? batch.cut.samples : batch.cut.begin(batch.end_slice);
  RECMILL_RETURN_IF_ERROR(reader.read(epoch, first + begin, end - begin, columns_));
  if (columns_.samples != end - begin) {
    return Status::Failed("the data ended before its last row: it changed while it was read");
  }
  columns_.first = place + begin;
  if (batch.purpose != store::Purpose::train) {
    note_rows(batch.cut.begin(batch.first_slice) - begin, batch.cut.begin(batch.end_slice) - begin,
              batch);
  }
  return preprocess(columns_, whole, batch);
}

// Of samples [begin, end) of those read, which are this rank's: where they are from, and which lack
// a label. These are negatives to the loss, which nobody asks for then.
void RankSamples::note_rows(int64_t begin, int64_t end, RankBatch& batch) {
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
Status RankSamples::preprocess(const ColumnBatch& columns, bool whole, RankBatch& batch) {
  const bool training = batch.purpose == store::Purpose::train;
  if (training && !columns.keys.numbers.empty()) {
    const int64_t first = whole ? 0 : batch.cut.begin(batch.first_slice);
    copy_samples(columns.keys, batch.cut.begin(batch.first_slice) - first,
                 batch.cut.begin(batch.end_slice) - first, batch.keys);
  }
  DenseBatch& dense = whole ? whole_dense_ : batch.dense;
  SparseBatch& sparse = whole ? whole_sparse_ : batch.sparse;
  if (training) {
    if (batch.before.epoch > 0 || !schedule_.dictionaries_grow) preprocessor_.stop_counting();
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

Status EvaluationPass::read(const StreamPosition& position, int64_t limit, RankSamples& samples,
                            RankBatch& batch) {
  RECMILL_ASSIGN_OR_RETURN(int64_t rows, eval_->rows());
  if (rows == 0) return Status::Failed("data.eval: there is no row in it");
  if (limit > 0) rows = std::min(rows, limit);
  const int64_t first = evaluated_;
  batch.purpose = schedule_.serves ? store::Purpose::serve : store::Purpose::evaluate;
  batch.before = batch.after = position;
  samples.cut(std::min(schedule_.eval_batch_size, rows - first), batch);
  batch.last_of_pass = first + schedule_.eval_batch_size >= rows;
  batch.ends_training = batch.last_of_pass && training_is_over(schedule_, position);
  evaluated_ = batch.last_of_pass ? 0 : first + batch.cut.samples;
  return samples.fill(*eval_, 0, first, first, batch);
}

}  // namespace recmill::train
