// SPDX-License-Identifier: Apache-2.0
#include "reader/row_blocks.h"

#include <algorithm>
#include <utility>

#include "reader/batch_rows.h"

namespace recmill::reader {
namespace {

/// Seeks from range to range.
class RangesReader final : public Reader {
 public:
  RangesReader(std::unique_ptr<Reader> reader, std::vector<RowRange> ranges)
      : reader_(std::move(reader)), ranges_(std::move(ranges)) {
    for (const RowRange& range : ranges_) starts_.push_back(starts_.back() + range.count);
  }

  const DataSchema& schema() const override { return reader_->schema(); }
  Result<int64_t> rows() override { return starts_.back(); }
  ReaderCounts counts() const override { return reader_->counts(); }
  KeySource key_source() const override { return reader_->key_source(); }

  Status read(int64_t epoch, int64_t first, int64_t count, ColumnBatch& batch) override {
    const int64_t end = std::max(first, std::min(first + count, starts_.back()));
    make_room(schema(), end - first, batch);
    batch.first = first;
    for (int64_t position = first; position < end;) {
      const auto range =
          static_cast<size_t>(std::ranges::upper_bound(starts_, position) - starts_.begin() - 1);
      const int64_t taken = std::min(end, starts_[range + 1]) - position;
      RECMILL_RETURN_IF_ERROR(
          reader_->read(epoch, ranges_[range].first + position - starts_[range], taken, piece_));
      if (piece_.samples != taken)
        return Status::Failed("the data ended before its last row: it changed while it was read");
      copy_rows(piece_, 0, taken, batch, position - first);
      position += taken;
    }
    return {};
  }

 private:
  const std::unique_ptr<Reader> reader_;
  const std::vector<RowRange> ranges_;
  std::vector<int64_t> starts_{0};  // [ranges + 1], rows of the ranges before
  ColumnBatch piece_;
};

}  // namespace

std::vector<int64_t> block_bounds(int64_t rows, std::span<const int64_t> starts, int64_t least) {
  std::vector<int64_t> bounds{0};
  if (starts.empty()) {
    while (rows - bounds.back() > least) bounds.push_back(bounds.back() + least);
  }
  for (const int64_t start : starts)
    if (start < rows && start - bounds.back() >= least) bounds.push_back(start);
  if (rows > 0) bounds.push_back(rows);
  return bounds;
}

Result<std::unique_ptr<Reader>> only_rows(std::unique_ptr<Reader> reader,
                                          std::vector<RowRange> ranges) {
  RECMILL_ASSIGN_OR_RETURN(const bool does, reader->keep_only(ranges));
  if (does) return reader;
  return std::unique_ptr<Reader>(
      std::make_unique<RangesReader>(std::move(reader), std::move(ranges)));
}

}  // namespace recmill::reader
