// SPDX-License-Identifier: Apache-2.0
#include "run/hotset/trained_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <span>

#include "comm/gather_values.h"
#include "reader/open_reader.h"

namespace recmill::train {
namespace {

constexpr int64_t kRowsAtOnce = 8192;

/// Of each training row in the data's order, where it is.
Result<std::vector<std::pair<int32_t, int64_t>>> places_of(const ResolvedRun& run, ThreadPool& pool,
                                                           Files& files) {
  DataOptions data = run.options.data;
  data.shuffle.kind = ShuffleKind::none;
  data.scored.numbers = true;
  RECMILL_ASSIGN_OR_RETURN(
      const auto rows,
      reader::open_reader(data, Subset::train, static_cast<uint64_t>(run.options.train.seed), pool,
                          files));
  RECMILL_ASSIGN_OR_RETURN(const int64_t count, rows->rows());
  std::vector<std::pair<int32_t, int64_t>> places;
  ColumnBatch batch;
  for (int64_t row = 0; row < count; row += batch.samples) {
    RECMILL_RETURN_IF_ERROR(rows->read(0, row, std::min(kRowsAtOnce, count - row), batch));
    if (batch.samples == 0) return Status::Failed("the data ended before its last row");
    if (batch.keys.numbers.empty()) return places;  // of no file
    for (int64_t i = 0; i < batch.samples; ++i)
      places.emplace_back(batch.keys.files[static_cast<size_t>(i)],
                          batch.keys.numbers[static_cast<size_t>(i)]);
  }
  if (!std::ranges::is_sorted(places))
    return Status::BadRequest("--order: rows of this data are in no order of files");
  return places;
}

}  // namespace

Result<std::unique_ptr<TrainedOrder>> TrainedOrder::open(const ResolvedRun& run,
                                                         const std::string& path,
                                                         Communicator& communicator,
                                                         ThreadPool& pool, Files& files) {
  std::unique_ptr<TrainedOrder> order(new TrainedOrder(communicator));
  order->is_apart_ = run.hot_folder != nullptr;
  const DataOptions& data = run.options.data;
  if (!order->is_apart_ && data.format == DataFormat::behavior_log)
    return Status::BadRequest("--order: rows of a behavior_log are in no file");
  if (!order->is_apart_ && data.format != DataFormat::synthetic) {
    RECMILL_ASSIGN_OR_RETURN(order->places_, places_of(run, pool, files));
  }
  if (communicator.rank() != 0) return order;
  RECMILL_ASSIGN_OR_RETURN(order->file_, AtomicFile::create(files, path));
  return order;
}

Result<int64_t> TrainedOrder::number_of(const RankBatch& batch, int64_t sample) const {
  const auto i = static_cast<size_t>(sample);
  if (is_apart_) {
    int64_t number = 0;
    const std::string& cell = batch.keys.cells.at(i);
    std::from_chars(cell.data(), cell.data() + cell.size(), number);
    return number;
  }
  // Rows that are in no file are trained as they are drawn.
  if (places_.empty()) return batch.before.row + batch.cut.begin(batch.first_slice) + sample;
  const std::pair<int32_t, int64_t> place(batch.keys.files.at(i), batch.keys.numbers.at(i));
  const auto found = std::ranges::lower_bound(places_, place);
  if (found == places_.end() || *found != place)
    return Status::Failed("--order: the data changed while it was read");
  return found - places_.begin();
}

Status TrainedOrder::write(const RankBatch& batch) {
  std::vector<int64_t> own;
  for (int64_t sample = 0; sample < batch.samples(); ++sample) {
    RECMILL_ASSIGN_OR_RETURN(own.emplace_back(), number_of(batch, sample));
  }
  RECMILL_ASSIGN_OR_RETURN(const auto all,
                           gather_lists(std::span<const int64_t>(own), communicator_));
  if (file_ == nullptr) return {};
  std::string lines;
  for (const auto& of_rank : all)
    for (const int64_t number : of_rank) fmt::format_to(std::back_inserter(lines), "{}\n", number);
  return file_->append(std::as_bytes(std::span(lines)));
}

Status TrainedOrder::close() {
  return file_ == nullptr ? Status() : file_->close();
}

}  // namespace recmill::train
