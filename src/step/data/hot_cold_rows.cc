// SPDX-License-Identifier: Apache-2.0
#include "step/data/hot_cold_rows.h"

#include <algorithm>

namespace recmill::train {

using hotset::BatchKind;

Result<std::unique_ptr<HotColdRows>> HotColdRows::open(std::unique_ptr<reader::Reader> cold,
                                                       std::unique_ptr<reader::Reader> hot) {
  std::unique_ptr<HotColdRows> rows(new HotColdRows(std::move(cold), std::move(hot)));
  RECMILL_ASSIGN_OR_RETURN(rows->cold_rows_, rows->cold_->rows());
  RECMILL_ASSIGN_OR_RETURN(rows->hot_rows_, rows->hot_->rows());
  return rows;
}

hotset::HotBatches HotColdRows::batches(int64_t batch_size) const {
  return {(cold_rows_ + batch_size - 1) / batch_size, (hot_rows_ + batch_size - 1) / batch_size};
}

Status HotColdRows::read(int64_t epoch, int64_t first, int64_t count, ColumnBatch& batch) {
  const bool hot = first >= cold_rows_;
  RECMILL_RETURN_IF_ERROR(
      hot ? hot_->read(epoch, first - cold_rows_, count, batch)
          : cold_->read(epoch, first, std::min(count, cold_rows_ - first), batch));
  batch.first = first;
  return {};
}

reader::ReaderCounts HotColdRows::counts() const {
  const reader::ReaderCounts cold = cold_->counts(), hot = hot_->counts();
  return {.rows = cold.rows + hot.rows,
          .bad_rows = cold.bad_rows + hot.bad_rows,
          .passed_over = cold.passed_over + hot.passed_over};
}

}  // namespace recmill::train
