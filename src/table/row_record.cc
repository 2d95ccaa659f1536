// SPDX-License-Identifier: Apache-2.0
#include "table/row_record.h"

#include <algorithm>
#include <cstring>

#include "kernels/row_values.h"
#include "table/optimizers/row_formulas.h"

namespace recmill::table {

RowRecord::RowRecord(const TableSpec& spec, int64_t columns) {
  bool by_row = false;
  if (!spec.frozen) {
    with_formula(spec.optimizer, {}, [&]<class Formula>(const Formula&) {
      element_columns_ = Formula::kElementColumns;
      by_row = Formula::kRowState;
    });
  }
  const auto next_float = [](int64_t bytes) { return (bytes + 3) / 4 * 4; };
  const int64_t weights = columns * kernels::bytes_of(spec.precision);
  storage_.dim = columns;
  storage_.precision = spec.precision;
  storage_.element_state = element_columns_ > 0 ? next_float(weights) : weights;
  storage_.stride = storage_.element_state + element_columns_ * columns * 4;
  row_state_ = by_row ? next_float(storage_.stride) : storage_.stride;
  bytes_ = row_state_ + (by_row ? 4 : 0);
}

void RowRecord::pack(const kernels::RowStorage& rows, int64_t slot, std::byte* record) const {
  std::memcpy(record, rows.record(slot), storage_.stride);
  if (!has_row_state()) return;
  std::memset(record + storage_.stride, 0, row_state_ - storage_.stride);
  std::memcpy(record + row_state_, rows.row_state + slot, 4);
}

void RowRecord::unpack(const std::byte* record, const kernels::RowStorage& rows,
                       int64_t slot) const {
  std::memcpy(rows.record(slot), record, storage_.stride);
  if (has_row_state()) std::memcpy(rows.row_state + slot, record + row_state_, 4);
}

kernels::RowStorage RowRecord::in_place(std::byte* record) const {
  kernels::RowStorage row = storage_;
  row.data = record;
  row.count = 1;
  if (has_row_state()) row.row_state = reinterpret_cast<float*>(record + row_state_);
  return row;
}

int64_t RowRecord::weight_bytes() const {
  return storage_.dim * kernels::bytes_of(storage_.precision);
}

void RowRecord::read_weights(const std::byte* record, std::span<float> weights) const {
  const kernels::RowStorage row = in_place(const_cast<std::byte*>(record));
  for (int64_t e = 0; e < row.dim; ++e) weights[e] = kernels::weight_value(row, 0, e);
}

void RowRecord::read(const std::byte* record, std::span<float> weights,
                     std::span<const std::span<float>> state) const {
  read_weights(record, weights);
  const kernels::RowStorage row = in_place(const_cast<std::byte*>(record));
  for (int64_t c = 0; c < element_columns_; ++c)
    std::copy_n(row.state(0) + c * row.dim, row.dim, state[c].data());
  if (has_row_state()) std::memcpy(state[element_columns_].data(), record + row_state_, 4);
}

std::vector<RowRecord::Part> RowRecord::parts(ColumnRange columns, bool row_state) const {
  const int64_t weight = kernels::bytes_of(storage_.precision);
  std::vector<Part> parts{{columns.first * weight, columns.count * weight}};
  for (int64_t c = 0; c < element_columns_; ++c)
    parts.push_back(
        {storage_.element_state + (c * storage_.dim + columns.first) * 4, columns.count * 4});
  if (row_state && has_row_state()) parts.push_back({row_state_, 4});
  return parts;
}

}  // namespace recmill::table
