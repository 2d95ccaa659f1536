// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arrow/array.h>
#include <arrow/record_batch.h>

#include <functional>
#include <memory>
#include <string>

#include "reader/arrow/arrow_files.h"
#include "reader/arrow/arrow_values.h"
#include "reader/columnar/row_group_file.h"

namespace recmill::reader {

/// Rows of an Arrow array on the way to the cells: it stays in the second-level cache.
inline constexpr int64_t kArrayRows = 16384;

/// A field as a sequence of Arrow arrays of any length, of the top-level field that it is in.
class ArrayCursor final : public FieldCursor {
 public:
  /// The next array, or null at the end.
  using Next = std::function<Result<std::shared_ptr<arrow::Array>>()>;

  ArrayCursor(const BoundColumn& column, CellKind kind, std::string where, Next next)
      : column_(column), kind_(kind), where_(std::move(where)), next_(std::move(next)) {}

  Status read(int64_t rows, ColumnCells& cells) override {
    cells.clear();
    return advance(rows, [&](const arrow::Array& array) {
      return append_cells(array, column_, kind_, where_, cells);
    });
  }
  Status skip(int64_t rows) override {
    return advance(rows, [](const arrow::Array&) { return Status(); });
  }

 private:
  template <typename Use>
  Status advance(int64_t rows, Use&& use) {
    while (rows > 0) {
      if (left_ == nullptr || left_->length() == 0) {
        RECMILL_ASSIGN_OR_RETURN(left_, next_());
        if (left_ == nullptr) {
          return Status::Failed(where_ + ": ends after " + std::to_string(row_) +
                                " rows, before the footer says");
        }
        RECMILL_ASSIGN_OR_RETURN(
            left_, field_inside(std::move(left_), column_.place_of(kind_).inside, where_));
        continue;
      }
      const int64_t count = std::min(rows, left_->length());
      RECMILL_RETURN_IF_ERROR(use(*left_->Slice(0, count)));
      left_ = left_->Slice(count);
      row_ += count;
      rows -= count;
    }
    return {};
  }

  const BoundColumn& column_;
  const CellKind kind_;
  const std::string where_;
  const Next next_;
  std::shared_ptr<arrow::Array> left_;  // of the last array
  int64_t row_ = 0;                     // of the row group
};

/// The arrays of batches of one field.
inline ArrayCursor::Next arrays_of(std::shared_ptr<arrow::RecordBatchReader> batches,
                                   std::string where) {
  return [batches = std::move(batches),
          where = std::move(where)]() -> Result<std::shared_ptr<arrow::Array>> {
    std::shared_ptr<arrow::Array> array;
    const Status read = without_exceptions(where, [&]() -> Status {
      std::shared_ptr<arrow::RecordBatch> batch;
      RECMILL_RETURN_IF_ARROW_ERROR(batches->ReadNext(&batch), where);
      if (batch != nullptr) array = batch->column(0);
      return {};
    });
    RECMILL_RETURN_IF_ERROR(read);
    return array;
  };
}

}  // namespace recmill::reader
