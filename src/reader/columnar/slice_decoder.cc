// SPDX-License-Identifier: Apache-2.0
#include "reader/columnar/slice_decoder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/hash.h"

namespace recmill::reader {
namespace {

template <typename T>
void gather(const std::vector<T>& from, const std::vector<uint32_t>& rows, std::vector<T>& to) {
  to.resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) to[i] = from[rows[i]];
}

void gather(const IdColumn& from, const std::vector<uint32_t>& rows, IdColumn& to) {
  to.offsets.resize(rows.size() + 1);
  to.offsets[0] = 0;
  to.ids.resize(from.ids.size());
  to.weights.resize(from.weights.size());
  int64_t at = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t begin = from.offsets[rows[i]], end = from.offsets[rows[i] + 1];
    for (int64_t j = begin; j < end; ++j)
      to.ids[static_cast<size_t>(at + j - begin)] = from.ids[static_cast<size_t>(j)];
    if (!from.weights.empty()) {
      std::copy(from.weights.begin() + begin, from.weights.begin() + end, to.weights.begin() + at);
    }
    at += end - begin;
    to.offsets[i + 1] = at;
  }
  to.ids.resize(static_cast<size_t>(at));
  if (!from.weights.empty()) to.weights.resize(static_cast<size_t>(at));
}

/// Moves `from` to `to`: all of it, or `rows` of it in their order.
template <typename Column>
void take(Column& from, const std::vector<uint32_t>& rows, Column& to) {
  rows.empty() ? std::swap(from, to) : gather(from, rows, to);
}

/// Puts the weights beside the ids of each row; an item that is no id has none. Rows where they are
/// not as many as the items, or not finite, are bad, and get some weights.
void join_weights(ColumnCells& cells, const ColumnCells& weights) {
  IdColumn& ids = cells.ids;
  const IdColumn& beside = weights.ids;
  ids.weights.assign(ids.ids.size(), 1.0f);
  auto has_id = cells.has_id.begin();
  auto to = ids.weights.begin();
  for (size_t row = 0; row < cells.items.size(); ++row) {
    auto from = beside.weights.begin() + beside.offsets[row];
    const int64_t items = cells.items[row];
    if (items != beside.offsets[row + 1] - beside.offsets[row]) {
      cells.note_bad(static_cast<int64_t>(row),
                     Status::Failed("its weights are not as many as its ids"));
      has_id += items;
      to = ids.weights.begin() + ids.offsets[row + 1];
      continue;
    }
    bool finite = true;
    for (int64_t i = 0; i < items; ++i, ++from) {
      if (*has_id++ == 0) continue;
      finite = finite && std::isfinite(*from);
      *to++ = *from;
    }
    if (!finite) {
      cells.note_bad(static_cast<int64_t>(row), Status::Failed("a weight is not a finite number"));
    }
  }
}

template <typename T>
void append_bytes(const T* values, size_t count, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

void append_cell(const ColumnCells& cells, CellKind kind, size_t row, std::string& bytes) {
  switch (kind) {
    case CellKind::number:
      return append_bytes(&cells.numbers[row], 1, bytes);
    case CellKind::group:
      return append_bytes(&cells.groups[row], 1, bytes);
    case CellKind::time:
      return append_bytes(&cells.times[row], 1, bytes);
    default: {
      const int64_t begin = cells.ids.offsets[row], count = cells.ids.offsets[row + 1] - begin;
      append_bytes(&count, 1, bytes);
      append_bytes(cells.ids.ids.data() + begin, static_cast<size_t>(count), bytes);
      if (cells.ids.weights.empty()) return;
      append_bytes(cells.ids.weights.data() + begin, static_cast<size_t>(count), bytes);
    }
  }
}

}  // namespace

SliceDecoder::SliceDecoder(std::vector<BoundFile> files, size_t most_bad, ThreadPool& pool)
    : files_(std::move(files)), pool_(pool), columns_(schema().columns.size()) {
  for (size_t file = 0; file < files_.size(); ++file) {
    const auto& rows = files_[file].file->row_groups();
    int64_t first_row = 0;
    for (size_t group = 0; group < rows.size(); first_row += rows[group++]) {
      groups_.push_back({file, static_cast<int64_t>(group), first_row});
    }
  }
  for (ColumnState& column : columns_) column.cells.most_bad = column.weights.most_bad = most_bad;
}

std::vector<int64_t> SliceDecoder::group_rows() const {
  std::vector<int64_t> rows;
  for (const BoundFile& bound : files_) {
    rows.insert(rows.end(), bound.file->row_groups().begin(), bound.file->row_groups().end());
  }
  return rows;
}

Status SliceDecoder::decode(const RowSlice& slice, std::span<const size_t> columns) {
  const bool follows = slice.group == slice_.group && slice.begin == slice_.begin + slice_.rows &&
                       std::ranges::equal(columns, decoded_);
  slice_ = slice;
  decoded_.clear();
  std::vector<Status> statuses(columns.size());
  pool_.run(static_cast<int64_t>(columns.size()), [&](int64_t task) {
    const auto i = static_cast<size_t>(task);
    statuses[i] = decode_column(columns[i], follows);
  });
  for (const Status& status : statuses) RECMILL_RETURN_IF_ERROR(status);
  decoded_.assign(columns.begin(), columns.end());
  return {};
}

Status SliceDecoder::decode_column(size_t column, bool follows) {
  ColumnState& state = columns_[column];
  const BoundColumn& what = bound(column);
  if (what.values.field < 0) {  // a label that is not there
    state.cells.clear();
    state.cells.numbers.assign(static_cast<size_t>(slice_.rows),
                               std::numeric_limits<float>::quiet_NaN());
    return {};
  }
  RECMILL_RETURN_IF_ERROR(decode_field(what, what.kind, follows, state.cells_at, state.cells));
  if (what.weights.field < 0) return {};
  RECMILL_RETURN_IF_ERROR(
      decode_field(what, CellKind::weights, follows, state.weights_at, state.weights));
  join_weights(state.cells, state.weights);
  return {};
}

Status SliceDecoder::decode_field(const BoundColumn& what, CellKind kind, bool follows,
                                  std::unique_ptr<FieldCursor>& cursor, ColumnCells& cells) {
  const GroupPlace& place = place_of(slice_);
  RowGroupFile& file = *files_[place.file].file;
  if (!follows || cursor == nullptr) {
    const int64_t rows = file.row_groups()[static_cast<size_t>(place.group)];
    RECMILL_ASSIGN_OR_RETURN(cursor, file.open(place.group, what, kind, rows > slice_.rows));
    if (slice_.begin > 0) RECMILL_RETURN_IF_ERROR(cursor->skip(slice_.begin));
  }
  RECMILL_RETURN_IF_ERROR(cursor->read(slice_.rows, cells));
  RECMILL_CHECK(cells.rows(kind) == slice_.rows, what.spec.name);
  return {};
}

std::vector<BadRow> SliceDecoder::bad_rows() const {
  std::vector<BadRow> rows;
  for (const size_t column : decoded_) {
    for (const BadRow& bad : columns_[column].cells.bad) {
      rows.push_back({bad.row, bad.status.at("column '" + bound(column).spec.name + "', row " +
                                             std::to_string(number_of(slice_) + bad.row))});
    }
  }
  std::ranges::stable_sort(rows, {}, &BadRow::row);
  const auto repeated = std::ranges::unique(rows, {}, &BadRow::row);
  rows.erase(repeated.begin(), repeated.end());
  const std::string& path = files_[file_of(slice_)].file->path();
  for (BadRow& bad : rows) bad.status = bad.status.at(path);
  return rows;
}

uint64_t SliceDecoder::key_of(int column, size_t row) const {
  thread_local std::string bytes;
  bytes.clear();
  for (const size_t decoded : decoded_) {
    if (column >= 0 && static_cast<size_t>(column) != decoded) continue;
    append_cell(columns_[decoded].cells, bound(decoded).kind, row, bytes);
  }
  return hash_bytes(bytes);
}

void SliceDecoder::hand_over(const std::vector<uint32_t>& rows, ColumnBatch& batch) {
  batch.dense.resize(schema().schema.dense.size());
  batch.ids.resize(schema().schema.ids.size());
  pool_.run(static_cast<int64_t>(columns_.size()),
            [&](int64_t column) { hand_over_column(static_cast<size_t>(column), rows, batch); });
  batch.samples = rows.empty() ? slice_.rows : static_cast<int64_t>(rows.size());
}

void SliceDecoder::hand_over_column(size_t column, const std::vector<uint32_t>& rows,
                                    ColumnBatch& batch) {
  const BoundColumn& what = bound(column);
  const auto target = static_cast<size_t>(what.target);
  ColumnCells& cells = columns_[column].cells;
  switch (what.spec.role) {
    case ColumnRole::label:
      return take(cells.numbers, rows, batch.labels);
    case ColumnRole::dense:
      return take(cells.numbers, rows, batch.dense[target]);
    case ColumnRole::id:
      return take(cells.ids, rows, batch.ids[target]);
    case ColumnRole::sample_weight:
      return take(cells.numbers, rows, batch.sample_weights);
    case ColumnRole::group:
      return take(cells.groups, rows, batch.groups);
    case ColumnRole::time:
      return take(cells.times, rows, batch.times);
    case ColumnRole::ignore:
      return;
  }
}

}  // namespace recmill::reader
