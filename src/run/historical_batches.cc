// SPDX-License-Identifier: Apache-2.0
#include "run/historical_batches.h"

#include <algorithm>
#include <numeric>

#include "base/random.h"

namespace recmill::train {

Result<HistoricalBatches> HistoricalBatches::open(const ResolvedRun& run, uint64_t seed,
                                                  ThreadPool& pool, Files& files) {
  DataOptions data = run.options.data;
  const auto own = static_cast<uint64_t>(run.options.train.seed);
  const Random random(own, Purpose::tuning, seed);
  // Not negative, as seeds of a configuration are not.
  data.synthetic.seed =
      static_cast<int64_t>((random.bits64(0) ^ static_cast<uint64_t>(data.synthetic.seed)) >> 1);
  HistoricalBatches batches;
  RECMILL_ASSIGN_OR_RETURN(batches.data_,
                           open_training_ids(run, data, random.bits64(1), pool, files));
  if (data.format != DataFormat::synthetic) {
    batches.row_ =
        static_cast<int64_t>(random.below(static_cast<uint64_t>(batches.data_.rows), /*item=*/2));
  }
  return batches;
}

// Leaves the next samples in columns_, in pieces where the data ends between them.
Status HistoricalBatches::read(int64_t samples) {
  const int64_t first = std::min(samples, data_.rows - row_);
  RECMILL_RETURN_IF_ERROR(data_.reader->read(epoch_, row_, first, columns_));
  int64_t done = columns_.samples;
  if (done != first) {
    return Status::Failed("the data ended before its last row: it changed while it was read");
  }
  row_ += done;
  std::vector<int64_t> all;
  for (; done < samples; done += piece_.samples) {
    if (row_ == data_.rows) {
      row_ = 0;
      ++epoch_;
    }
    RECMILL_RETURN_IF_ERROR(
        data_.reader->read(epoch_, row_, std::min(samples - done, data_.rows - row_), piece_));
    if (piece_.samples == 0) {
      return Status::Failed("the data ended before its last row: it changed while it was read");
    }
    row_ += piece_.samples;
    all.resize(static_cast<size_t>(piece_.samples));
    std::iota(all.begin(), all.end(), int64_t{0});
    append_samples(piece_, all, columns_);
  }
  return {};
}

Status HistoricalBatches::next(int64_t samples, SparseBatch& batch) {
  RECMILL_CHECK(samples >= 0, std::to_string(samples));
  RECMILL_RETURN_IF_ERROR(read(samples));
  return data_.preprocessor->train(columns_, dense_, batch);
}

int64_t tune_batch_size(const RunOptions& options, uint64_t seed, int64_t index) {
  std::vector<int64_t> sizes = options.tune.batch_sizes;
  if (sizes.empty()) return options.train.batch_size;
  std::ranges::sort(sizes);
  constexpr int64_t kParts = 8;
  constexpr int64_t kOrder[kParts] = {7, 3, 5, 1, 6, 2, 4, 0};
  const int64_t part = kOrder[index % kParts], count = std::ssize(sizes);
  const int64_t begin = part * count / kParts, end = (part + 1) * count / kParts;
  const Random random(static_cast<uint64_t>(options.train.seed), Purpose::tuning, seed);
  // Items 0 to 2 are the data's (HistoricalBatches::open).
  const auto bound = static_cast<uint64_t>(std::max<int64_t>(1, end - begin));
  return sizes[begin + static_cast<int64_t>(random.below(bound, static_cast<uint64_t>(index) + 3))];
}

}  // namespace recmill::train
