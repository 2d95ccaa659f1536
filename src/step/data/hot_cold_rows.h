// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/status.h"
#include "hotset/hot_cold_order.h"
#include "reader/reader.h"

namespace recmill::train {

/// Training inputs in two sequences, the cold and the hot ones, each in a seeded order of its own,
/// by the same columns. As one reader it has the cold rows of an epoch, then the hot ones.
class HotColdRows final : public reader::Reader {
 public:
  static Result<std::unique_ptr<HotColdRows>> open(std::unique_ptr<reader::Reader> cold,
                                                   std::unique_ptr<reader::Reader> hot);

  int64_t rows(hotset::BatchKind kind) const {
    return kind == hotset::BatchKind::hot ? hot_rows_ : cold_rows_;
  }
  /// Full batches of so many samples, and one that may have fewer.
  hotset::HotBatches batches(int64_t batch_size) const;
  reader::Reader& reader(hotset::BatchKind kind) {
    return kind == hotset::BatchKind::hot ? *hot_ : *cold_;
  }

  const DataSchema& schema() const override { return cold_->schema(); }
  Result<int64_t> rows() override { return cold_rows_ + hot_rows_; }
  Status read(int64_t epoch, int64_t first, int64_t count, ColumnBatch& batch) override;
  reader::ReaderCounts counts() const override;

 private:
  HotColdRows(std::unique_ptr<reader::Reader> cold, std::unique_ptr<reader::Reader> hot)
      : cold_(std::move(cold)), hot_(std::move(hot)) {}

  const std::unique_ptr<reader::Reader> cold_, hot_;
  int64_t cold_rows_ = 0, hot_rows_ = 0;
};

}  // namespace recmill::train
