// SPDX-License-Identifier: Apache-2.0
#include "reader/text/parsed_piece.h"

#include <algorithm>

namespace recmill::reader {

void ParsedPiece::begin(ColumnBatch& target, const std::vector<bool>& has_bags, int64_t first_row,
                        int64_t rows) {
  batch = &target;
  first = first_row;
  columns.resize(target.ids.size());
  for (size_t c = 0; c < columns.size(); ++c) {
    PieceColumn& column = columns[c];
    std::vector<int64_t>& offsets = target.ids[c].offsets;
    column.ends = offsets.data() + first + 1;
    column.weights.clear();
    if (has_bags[c]) {
      if (static_cast<int64_t>(column.own_ids.size()) <= rows) column.own_ids.resize(rows + 1);
      column.ids = column.own_ids.data();
      column.start = 0;
    } else {
      column.ids = target.ids[c].ids.data();
      column.start = offsets[target.samples] + first - target.samples;
    }
    column.size = column.start;
  }
  dense.clear();
  for (auto& column : target.dense) dense.push_back(column.data() + first_row);
}

void ParsedPiece::store(int64_t row, const RowValues& values) {
  const int64_t at = first + row;
  batch->labels[at] = values.label;
  for (size_t c = 0; c < dense.size(); ++c) dense[c][row] = values.dense[c];
  if (!batch->sample_weights.empty()) batch->sample_weights[at] = values.sample_weight;
  if (!batch->times.empty()) batch->times[at] = values.time;
  if (!batch->groups.empty()) batch->groups[at] = values.group;
  for (size_t c = 0; c < columns.size(); ++c) store_bag(row, c, values);
}

void ParsedPiece::store_cell(int64_t row, const TextColumn& column, const RowValues& values) {
  const int64_t at = first + row;
  switch (column.spec.role) {
    case ColumnRole::label:
      batch->labels[at] = values.label;
      break;
    case ColumnRole::dense:
      dense[column.target][row] = values.dense[column.target];
      break;
    case ColumnRole::id:
      store_bag(row, column.target, values);
      break;
    case ColumnRole::sample_weight:
      batch->sample_weights[at] = values.sample_weight;
      break;
    case ColumnRole::time:
      batch->times[at] = values.time;
      break;
    case ColumnRole::group:
      batch->groups[at] = values.group;
      break;
    case ColumnRole::ignore:
      break;
  }
}

void ParsedPiece::store_bag(int64_t row, size_t c, const RowValues& values) {
  PieceColumn& column = columns[c];
  const auto& bag = values.ids[c];
  const size_t size = column.size + bag.size();
  // Room for one more: the fast parser writes an id before it knows whether there is one.
  if (column.holds_bags() && column.own_ids.size() <= size) {
    column.own_ids.resize(2 * size + 1);
    column.ids = column.own_ids.data();
  }
  std::copy(bag.begin(), bag.end(), column.ids + column.size);
  column.weights.insert(column.weights.end(), values.weights[c].begin(), values.weights[c].end());
  column.size = column.ends[row] = static_cast<int64_t>(size);
}

void ParsedPiece::forget(int64_t row) {
  for (PieceColumn& column : columns) {
    column.size = row == 0 ? column.start : column.ends[row - 1];
    if (!column.weights.empty()) column.weights.resize(column.size);
  }
}

void ParsedPiece::join(size_t c, int64_t rows) {
  const PieceColumn& piece = columns[c];
  IdColumn& column = batch->ids[c];
  const int64_t before = column.offsets[first];
  if (piece.holds_bags()) {
    column.ids.insert(column.ids.end(), piece.ids, piece.ids + piece.size);
    column.weights.insert(column.weights.end(), piece.weights.begin(), piece.weights.end());
  } else if (before < piece.start) {
    std::copy(piece.ids + piece.start, piece.ids + piece.size, piece.ids + before);
  }
  if (before == piece.start) return;
  for (int64_t row = 0; row < rows; ++row) piece.ends[row] += before - piece.start;
}

}  // namespace recmill::reader
