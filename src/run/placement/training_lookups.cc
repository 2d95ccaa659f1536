// SPDX-License-Identifier: Apache-2.0
#include "run/placement/training_lookups.h"

#include <algorithm>
#include <vector>

#include "step/data/batch_schedule.h"

namespace recmill::train {
namespace {

// Of a batch, and raw ids of one, as far as the batch before it tells.
constexpr int64_t kBatchRows = 8192, kBatchIds = 16'000'000;

}  // namespace

int64_t rows_of_next_batch(const ColumnBatch& batch) {
  int64_t ids = 0;
  for (const IdColumn& column : batch.ids) ids += std::ssize(column.ids);
  return std::clamp<int64_t>(kBatchIds / (ids / batch.samples + 1), 1, kBatchRows);
}

KeptRows::KeptRows(const ResolvedRun& run)
    : run_(run),
      sampling_(static_cast<uint64_t>(run.options.train.seed), Purpose::down_sampling, 0) {}

const ColumnBatch& KeptRows::of(const ColumnBatch& read, int64_t row) {
  const double share = run_.options.train.negative_keep;
  if (share >= 1.0) return read;
  std::vector<int64_t> which;
  for (int64_t i = 0; i < read.samples; ++i) {
    if (is_kept(sampling_, share, read.labels[i], row + i)) which.push_back(i);
  }
  clear_samples(kept_);
  kept_.first = row;
  append_samples(read, which, kept_);
  return kept_;
}

TrainingLookups::TrainingLookups(const ResolvedRun& run, ThreadPool& pool)
    : run_(run), pool_(pool), kept_(run) {}

Status TrainingLookups::open(Files& files) {
  RECMILL_ASSIGN_OR_RETURN(data_, open_training_ids(run_, pool_, files));
  return {};
}

Status TrainingLookups::visit(int64_t begin, int64_t end, Progress& progress,
                              const std::function<void(const SparseBatch&)>& visit) {
  return visit_columns(begin, end, progress, [&](const ColumnBatch&, const SparseBatch& sparse) {
    visit(sparse);
    return Status();
  });
}

Status TrainingLookups::fill_dictionaries(Progress& progress) {
  if (numbers_ids()) {
    const auto nothing = [](const ColumnBatch&, const SparseBatch&) { return Status(); };
    RECMILL_RETURN_IF_ERROR(visit_columns(0, data_.rows, progress, nothing));
  }
  full_ = true;
  return {};
}

Status TrainingLookups::visit_columns(int64_t begin, int64_t end, Progress& progress,
                                      const Visit& visit) {
  preprocess::Preprocessor& preprocessor = *data_.preprocessor;
  int64_t row = numbers_ids() ? 0 : begin;
  for (int64_t next = kFirstBatchRows; row < end; progress.show(row, "")) {
    const int64_t stop = row < begin ? begin : end;
    RECMILL_RETURN_IF_ERROR(data_.reader->read(0, row, std::min(next, stop - row), columns_));
    if (columns_.samples == 0)
      return Status::Failed("the data ended before its last row: it changed while it was read");
    next = rows_of_next_batch(columns_);
    const ColumnBatch& batch = kept_.of(columns_, row);
    if (batch.samples > 0) {
      RECMILL_RETURN_IF_ERROR(
          full_ ? preprocessor.evaluate(batch, preprocessor.versions(), dense_, sparse_)
                : preprocessor.train(batch, dense_, sparse_));
      if (row >= begin) RECMILL_RETURN_IF_ERROR(visit(batch, sparse_));
    }
    row += columns_.samples;
  }
  return {};
}

}  // namespace recmill::train
