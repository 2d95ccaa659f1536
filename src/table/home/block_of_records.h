// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "schema/table_spec.h"
#include "table/optimizers/row_state.h"
#include "table/row_block.h"
#include "table/row_record.h"

namespace recmill::table {

/// Rows in float32, on their way to a sink.
class BlockOfRecords {
 public:
  BlockOfRecords(const TableSpec& spec, int table) : spec_(spec), table_(table), record_(spec) {
    for (const StateColumn& column : row_state(spec)) columns_.push_back({column.width, {}});
  }

  int64_t rows() const { return std::ssize(rows_); }
  /// `record` begins at any address.
  void add(int64_t row, const std::byte* record) {
    rows_.push_back(row);
    const size_t dim = static_cast<size_t>(spec_.dim), first = weights_.size();
    weights_.resize(first + dim);
    std::vector<std::span<float>> state;
    for (Column& column : columns_) {
      column.values.resize(column.values.size() + static_cast<size_t>(column.width));
      state.push_back(std::span(column.values).last(static_cast<size_t>(column.width)));
    }
    record_.read(record, std::span(weights_).last(dim), state);
  }
  Status hand_out(const std::function<Status(const RowBlock&)>& sink) {
    if (rows_.empty()) return {};
    std::vector<std::span<const float>> state;
    for (const Column& column : columns_) state.emplace_back(column.values);
    RowBlock block{table_, rows_.front(), rows(), weights_, state};
    if (rows_.back() - rows_.front() + 1 != rows()) block.listed = rows_;
    RECMILL_RETURN_IF_ERROR(sink(block));
    rows_.clear();
    weights_.clear();
    for (Column& column : columns_) column.values.clear();
    return {};
  }

 private:
  struct Column {
    int64_t width = 0;
    std::vector<float> values;
  };
  const TableSpec& spec_;
  const int table_;
  const RowRecord record_;
  std::vector<int64_t> rows_;
  std::vector<float> weights_;
  std::vector<Column> columns_;
};

}  // namespace recmill::table
