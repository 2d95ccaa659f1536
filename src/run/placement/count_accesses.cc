// SPDX-License-Identifier: Apache-2.0
#include "run/placement/count_accesses.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/random.h"
#include "run/checkpoint/row_digest.h"
#include "run/handshake.h"
#include "run/rank.h"
#include "run/training_ids.h"
#include "stats/access_counter.h"
#include "stats/gather_counts.h"
#include "step/data/batch_schedule.h"

namespace recmill::train {
namespace {

// Rows of a batch, and raw ids of one, as far as the batch before it tells.
constexpr int64_t kFirstBatchRows = 64, kBatchRows = 8192, kBatchIds = 16'000'000;

int64_t rows_of_next_batch(const ColumnBatch& batch) {
  int64_t ids = 0;
  for (const IdColumn& column : batch.ids) ids += std::ssize(column.ids);
  return std::clamp<int64_t>(kBatchIds / (ids / batch.samples + 1), 1, kBatchRows);
}

/// One rank's part of the data.
class RankCounting {
 public:
  RankCounting(const ResolvedRun& run, ThreadPool& pool, stats::AccessCounter& counter)
      : run_(run),
        pool_(pool),
        counter_(counter),
        sampling_(static_cast<uint64_t>(run.options.train.seed), Purpose::down_sampling, 0) {}

  Status open(Files& files) {
    RECMILL_ASSIGN_OR_RETURN(data_, open_training_ids(run_, pool_, files));
    return {};
  }
  int64_t rows() const { return data_.rows; }

  /// Counts rows [begin, end). Where ids are numbered as they come, those before are seen as well.
  Status count(int64_t begin, int64_t end, Progress& progress) {
    int64_t row = data_.preprocessor->versions().empty() ? begin : 0;
    for (int64_t next = kFirstBatchRows; row < end; progress.show(row, "")) {
      const int64_t stop = row < begin ? begin : end;
      RECMILL_RETURN_IF_ERROR(data_.reader->read(0, row, std::min(next, stop - row), columns_));
      if (columns_.samples == 0)
        return Status::Failed("the data ended before its last row: it changed while it was read");
      next = rows_of_next_batch(columns_);
      const ColumnBatch& batch = kept(row);
      if (batch.samples > 0) {
        RECMILL_RETURN_IF_ERROR(data_.preprocessor->train(batch, dense_, sparse_));
        if (row >= begin) counter_.add(sparse_, pool_);
      }
      row += columns_.samples;
    }
    return {};
  }

 private:
  /// The rows that training keeps of those read from `row` on.
  const ColumnBatch& kept(int64_t row) {
    const double share = run_.options.train.negative_keep;
    if (share >= 1.0) return columns_;
    std::vector<int64_t> which;
    for (int64_t i = 0; i < columns_.samples; ++i) {
      if (is_kept(sampling_, share, columns_.labels[i], row + i)) which.push_back(i);
    }
    clear_samples(kept_);
    kept_.first = row;
    append_samples(columns_, which, kept_);
    return kept_;
  }

  const ResolvedRun& run_;
  ThreadPool& pool_;
  stats::AccessCounter& counter_;
  const Random sampling_;
  TrainingIds data_;
  ColumnBatch columns_, kept_;
  DenseBatch dense_;
  SparseBatch sparse_;
};

}  // namespace

Result<std::optional<AccessCounts>> count_accesses(const RunOptions& options,
                                                   const CountingRequest& request,
                                                   const JobSetting& setting) {
  RECMILL_ASSIGN_OR_RETURN(const ResolvedRun run,
                           resolve_run(options, setting.world, setting.files));
  const auto pool = make_pool(run.threads);
  std::optional<AccessCounts> counts;
  RECMILL_RETURN_IF_ERROR(setting.world.run(run.ranks, [&](Communicator& communicator) -> Status {
    RECMILL_RETURN_IF_ERROR(shake_hands(run, setting.identity, communicator, setting.files));
    RECMILL_ASSIGN_OR_RETURN(auto counter, stats::AccessCounter::create(run.spec, row_digest(run)));
    RankCounting counting(run, *pool, counter);
    RECMILL_RETURN_IF_ERROR(counting.open(setting.files));
    const int64_t rows =
        request.rows > 0 ? std::min(request.rows, counting.rows()) : counting.rows();
    const int rank = communicator.rank(), ranks = communicator.ranks();
    const int64_t end = (rank + 1) * rows / ranks;
    Progress progress(rank == 0 ? setting.progress : Progress::Style::silent, "counting", "rows",
                      end);
    RECMILL_RETURN_IF_ERROR(counting.count(rank * rows / ranks, end, progress));
    RECMILL_RETURN_IF_ERROR(stats::gather_counts(counter, communicator));
    if (rank == 0) counts = counter.finish(*pool, request.bytes);
    return {};
  }));
  return counts;
}

}  // namespace recmill::train
