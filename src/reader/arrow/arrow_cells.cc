// SPDX-License-Identifier: Apache-2.0
#include "reader/arrow/arrow_cells.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include "reader/arrow/arrow_values.h"

namespace recmill::reader {
namespace {

/// The bad values among the items of each row, as bad rows.
void note_bad_items(const std::vector<BadRow>& bad, const ListRows& rows, int64_t first_row,
                    ColumnCells& cells) {
  if (bad.empty()) return;
  for (size_t row = 0; row < rows.begin.size(); ++row) {
    const auto found = std::ranges::lower_bound(bad, rows.begin[row], {}, &BadRow::row);
    if (found == bad.end() || found->row >= rows.end[row]) continue;
    cells.note_bad(first_row + static_cast<int64_t>(row), found->status);
  }
}

Status append_id_lists(const arrow::Array& array, const BoundColumn& column,
                       const std::string& where, ColumnCells& cells) {
  RECMILL_ASSIGN_OR_RETURN(const ListRows rows, rows_of_lists(array, column.values.item, where));
  FlatIds flat;
  RECMILL_RETURN_IF_ERROR(flat_ids(*rows.items, column.spec.id_text, column.missing, where, flat));
  note_bad_items(flat.bad, rows, cells.rows(CellKind::id), cells);
  IdColumn& ids = cells.ids;
  const bool weighted = column.weights.field >= 0;
  for (size_t row = 0; row < rows.begin.size(); ++row) {
    for (auto i = static_cast<size_t>(rows.begin[row]); i < static_cast<size_t>(rows.end[row]);
         ++i) {
      if (flat.present[i] != 0) ids.ids.push_back(flat.values[i]);
      if (weighted) cells.has_id.push_back(flat.present[i]);
    }
    ids.offsets.push_back(static_cast<int64_t>(ids.ids.size()));
    if (weighted) cells.items.push_back(rows.end[row] - rows.begin[row]);
  }
  return {};
}

Status append_weight_lists(const arrow::Array& array, const BoundColumn& column,
                           const std::string& where, ColumnCells& cells) {
  RECMILL_ASSIGN_OR_RETURN(const ListRows rows, rows_of_lists(array, column.weights.item, where));
  IdColumn& ids = cells.ids;
  std::vector<float> flat;
  RECMILL_RETURN_IF_ERROR(append_numbers(*rows.items, NamedValues(), where, flat));
  for (size_t row = 0; row < rows.begin.size(); ++row) {
    ids.weights.insert(ids.weights.end(), flat.begin() + rows.begin[row],
                       flat.begin() + rows.end[row]);
    ids.offsets.push_back(static_cast<int64_t>(ids.weights.size()));
  }
  return {};
}

Status append_single_ids(const arrow::Array& array, const BoundColumn& column,
                         const std::string& where, ColumnCells& cells) {
  FlatIds flat;
  RECMILL_RETURN_IF_ERROR(flat_ids(array, column.spec.id_text, column.missing, where, flat));
  IdColumn& ids = cells.ids;
  const int64_t begin = cells.rows(CellKind::id);
  for (const BadRow& bad : flat.bad) cells.note_bad(begin + bad.row, bad.status);
  for (size_t i = 0; i < flat.values.size(); ++i) {
    if (flat.present[i]) ids.ids.push_back(flat.values[i]);
    ids.offsets.push_back(static_cast<int64_t>(ids.ids.size()));
  }
  return {};
}

/// Appends values that every row must have, unless it `may_lack` one.
template <typename T>
void append_needed(const FlatValues<T>& flat, int64_t begin, bool may_lack, std::vector<T>& to,
                   ColumnCells& cells) {
  auto bad = flat.bad.begin();
  for (size_t i = 0; i < flat.values.size(); ++i) {
    if (flat.present[i] != 0) continue;
    const auto row = static_cast<int64_t>(i);
    const bool no_such = bad != flat.bad.end() && bad->row == row;
    if (!no_such && may_lack) continue;
    cells.note_bad(begin + row, no_such ? (bad++)->status : no_value());
  }
  to.insert(to.end(), flat.values.begin(), flat.values.end());
}

}  // namespace

void ColumnCells::clear() {
  numbers.clear();
  ids.offsets.assign(1, 0);
  ids.ids.clear();
  ids.weights.clear();
  groups.clear();
  times.clear();
  items.clear();
  has_id.clear();
  bad.clear();
}

int64_t ColumnCells::rows(CellKind kind) const {
  switch (kind) {
    case CellKind::number:
      return static_cast<int64_t>(numbers.size());
    case CellKind::group:
      return static_cast<int64_t>(groups.size());
    case CellKind::time:
      return static_cast<int64_t>(times.size());
    default:
      return static_cast<int64_t>(ids.offsets.size()) - 1;
  }
}

Status no_value() {
  return Status::Failed("no value");
}

void check_numbers(int64_t first, int64_t count, const BoundColumn& column, ColumnCells& cells) {
  const auto numbers = std::span<float>(cells.numbers)
                           .subspan(static_cast<size_t>(first), static_cast<size_t>(count));
  const bool is_label = column.spec.role == ColumnRole::label;
  const float least =
      column.spec.role == ColumnRole::sample_weight ? 0 : -std::numeric_limits<float>::infinity();
  if (!is_label) {
    // One look at all of them first, without a branch: bad ones are rare.
    constexpr uint32_t kInfinite = 0x7F800000;
    const uint32_t looked_at = may_be_missing(column) ? 0x7FFFFFFF : kInfinite;
    bool any = false;
    for (const float number : numbers) {
      any |= (std::bit_cast<uint32_t>(number) & looked_at) == kInfinite || number < least;
    }
    if (!any) return;
  }
  for (size_t i = 0; i < numbers.size(); ++i) {
    const float number = numbers[i];
    const int64_t row = first + static_cast<int64_t>(i);
    if (std::isnan(number)) {
      if (!may_be_missing(column)) cells.note_bad(row, no_value());
    } else if (std::isinf(number)) {
      cells.note_bad(row, Status::Failed("is not a finite number"));
    } else if (is_label && !column.label.apply(numbers[i])) {
      cells.note_bad(row, column.label.refusal(number));
    } else if (number < least) {
      cells.note_bad(row, negative_weight());
    }
  }
}

Status append_cells(const arrow::Array& array, const BoundColumn& column, CellKind kind,
                    const std::string& where, ColumnCells& cells) {
  const int64_t begin = cells.rows(kind);
  switch (kind) {
    case CellKind::number:
      if (is_text_type(stored_type(*array.type()))) {
        FlatValues<float> flat;
        RECMILL_RETURN_IF_ERROR(flat_labels(array, column.label, column.missing, where, flat));
        for (size_t i = 0; i < flat.values.size(); ++i) {
          if (flat.present[i] == 0) flat.values[i] = std::numeric_limits<float>::quiet_NaN();
        }
        append_needed(flat, begin, column.may_be_empty, cells.numbers, cells);
        return {};
      }
      RECMILL_RETURN_IF_ERROR(append_numbers(array, column.missing, where, cells.numbers));
      check_numbers(begin, array.length(), column, cells);
      return {};
    case CellKind::id:
      return column.list ? append_id_lists(array, column, where, cells)
                         : append_single_ids(array, column, where, cells);
    case CellKind::weights:
      return append_weight_lists(array, column, where, cells);
    case CellKind::group: {
      FlatIds flat;
      RECMILL_RETURN_IF_ERROR(flat_ids(array, column.spec.id_text, column.missing, where, flat));
      append_needed(flat, begin, false, cells.groups, cells);
      return {};
    }
    case CellKind::time: {
      FlatTimes flat;
      RECMILL_RETURN_IF_ERROR(flat_times(array, column.missing, where, flat));
      append_needed(flat, begin, false, cells.times, cells);
      return {};
    }
  }
  return {};
}

}  // namespace recmill::reader
