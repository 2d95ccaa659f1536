// SPDX-License-Identifier: Apache-2.0
#include "reader/columnar/row_group_order.h"

#include <algorithm>

namespace recmill::reader {

std::vector<RowSlice> cut_row_groups(std::span<const int64_t> group_rows, int64_t window) {
  std::vector<RowSlice> slices;
  int64_t first_row = 0;
  for (size_t group = 0; group < group_rows.size(); ++group) {
    for (int64_t begin = 0; begin < group_rows[group]; begin += window) {
      const int64_t rows = std::min(window, group_rows[group] - begin);
      slices.push_back({static_cast<int64_t>(group), begin, rows, rows, first_row, first_row});
      first_row += rows;
    }
  }
  return slices;
}

std::vector<RowSlice> slices_of_epoch(const std::vector<RowSlice>& data, ShuffleKind kind,
                                      uint64_t seed, int64_t epoch) {
  std::vector<int64_t> bounds{0};  // of the row groups, in kept rows
  std::vector<size_t> first;       // slice of each row group
  for (size_t i = 0; i < data.size(); ++i) {
    if (i == 0 || data[i].group != data[i - 1].group) {
      first.push_back(i);
      bounds.push_back(bounds.back());
    }
    bounds.back() += data[i].kept;
  }
  first.push_back(data.size());
  const EpochOrder order = order_of_epoch(bounds, kind, seed, epoch);
  std::vector<RowSlice> slices;
  int64_t position = 0;
  for (const int64_t window : order.windows) {
    for (size_t i = first[static_cast<size_t>(window)]; i < first[static_cast<size_t>(window) + 1];
         ++i) {
      slices.push_back(data[i]);
      slices.back().position = position;
      position += data[i].kept;
    }
  }
  return slices;
}

}  // namespace recmill::reader
