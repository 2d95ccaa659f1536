// SPDX-License-Identifier: Apache-2.0
#include "reader/arrow_cells.h"

#include <arrow/type_traits.h>
#include <arrow/util/float16.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include "reader/plain_text_parser.h"

namespace recmill::reader {
namespace {

/// The flat values of an array as 64-bit ids, and which of them are there.
struct FlatIds {
  std::vector<uint64_t> values;  // [length]
  std::vector<uint8_t> present;  // [length]
  std::vector<BadRow> bad;       // those that are no id, ascending
};

/// Calls body(i) for each value that is there, in order.
template <typename Body>
void for_each_present(const arrow::Array& array, Body&& body) {
  const int64_t length = array.length();
  if (array.null_count() == 0) {
    for (int64_t i = 0; i < length; ++i) body(i);
    return;
  }
  for (int64_t i = 0; i < length; ++i) {
    if (array.IsValid(i)) body(i);
  }
}

/// Calls visit(typed array) for the integer and boolean types; false for any other.
template <typename Visit>
bool visit_whole(const arrow::Array& array, Visit&& visit) {
  switch (array.type_id()) {
    case arrow::Type::BOOL:
      return visit(static_cast<const arrow::BooleanArray&>(array)), true;
    case arrow::Type::INT8:
      return visit(static_cast<const arrow::Int8Array&>(array)), true;
    case arrow::Type::UINT8:
      return visit(static_cast<const arrow::UInt8Array&>(array)), true;
    case arrow::Type::INT16:
      return visit(static_cast<const arrow::Int16Array&>(array)), true;
    case arrow::Type::UINT16:
      return visit(static_cast<const arrow::UInt16Array&>(array)), true;
    case arrow::Type::INT32:
      return visit(static_cast<const arrow::Int32Array&>(array)), true;
    case arrow::Type::UINT32:
      return visit(static_cast<const arrow::UInt32Array&>(array)), true;
    case arrow::Type::INT64:
      return visit(static_cast<const arrow::Int64Array&>(array)), true;
    case arrow::Type::UINT64:
      return visit(static_cast<const arrow::UInt64Array&>(array)), true;
    default:
      return false;
  }
}

/// Calls visit(text_at), text_at(i) being cell i, for strings and binary; false for any other.
template <typename Visit>
bool visit_text(const arrow::Array& array, Visit&& visit) {
  const auto views = [&](const auto& typed) {
    visit([&typed](int64_t i) { return std::string_view(typed.GetView(i)); });
    return true;
  };
  switch (array.type_id()) {
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
      return views(static_cast<const arrow::BinaryArray&>(array));
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      return views(static_cast<const arrow::LargeBinaryArray&>(array));
    case arrow::Type::FIXED_SIZE_BINARY:
      return views(static_cast<const arrow::FixedSizeBinaryArray&>(array));
    default:
      return false;
  }
}

Status unreadable_type(const arrow::Array& array, const std::string& where) {
  return Status::BadRequest(where + ": cannot read values of type " + array.type()->ToString());
}

Status flat_text_ids(const arrow::Array& array, const ColumnSpec& spec, const std::string& where,
                     FlatIds& flat) {
  const bool known = visit_text(array, [&](const auto& text_at) {
    for_each_present(array, [&](int64_t i) {
      const std::string_view text = text_at(i);
      if (text.empty() || std::ranges::count(spec.missing, text) > 0) return;
      const auto id = parse_id(spec.id_text, text);
      if (!id.ok()) {
        flat.bad.push_back({i, id.status()});
        return;
      }
      flat.values[static_cast<size_t>(i)] = *id;
      flat.present[static_cast<size_t>(i)] = 1;
    });
  });
  return known ? Status() : unreadable_type(array, where);
}

/// True when `missing` lists the whole number `value`.
template <typename Whole>
bool is_listed(const std::vector<std::string>& missing, Whole value) {
  return !missing.empty() && std::ranges::count(missing, std::to_string(value)) > 0;
}

Status flat_ids(const arrow::Array& array, const ColumnSpec& spec, const std::string& where,
                FlatIds& flat) {
  const auto length = static_cast<size_t>(array.length());
  flat.values.assign(length, 0);
  flat.present.assign(length, 0);
  flat.bad.clear();
  if (array.type_id() == arrow::Type::NA) return {};
  if (array.type_id() == arrow::Type::DICTIONARY) {
    const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
    FlatIds dictionary;
    RECMILL_RETURN_IF_ERROR(flat_ids(*coded.dictionary(), spec, where, dictionary));
    Status status;
    for_each_present(array, [&](int64_t i) {
      const int64_t code = coded.GetValueIndex(i);
      if (code < 0 || code >= static_cast<int64_t>(dictionary.values.size())) {
        status = Status::Failed(where + ": index " + std::to_string(code) +
                                " is not in its dictionary of " +
                                std::to_string(dictionary.values.size()));
        return;
      }
      flat.values[static_cast<size_t>(i)] = dictionary.values[static_cast<size_t>(code)];
      flat.present[static_cast<size_t>(i)] = dictionary.present[static_cast<size_t>(code)];
      const auto bad = std::ranges::lower_bound(dictionary.bad, code, {}, &BadRow::row);
      if (bad != dictionary.bad.end() && bad->row == code) flat.bad.push_back({i, bad->status});
    });
    return status;
  }
  const bool whole = visit_whole(array, [&](const auto& typed) {
    for_each_present(array, [&](int64_t i) {
      const auto value = typed.Value(i);
      if (is_listed(spec.missing, value)) return;
      // Signed types extend their sign: -1 is 2^64 - 1, whatever the width.
      flat.values[static_cast<size_t>(i)] = static_cast<uint64_t>(value);
      flat.present[static_cast<size_t>(i)] = 1;
    });
  });
  return whole ? Status() : flat_text_ids(array, spec, where, flat);
}

Status append_numbers(const arrow::Array& array, const std::vector<std::string>& missing,
                      const std::string& where, std::vector<float>& numbers) {
  const size_t begin = numbers.size();
  numbers.resize(begin + static_cast<size_t>(array.length()),
                 std::numeric_limits<float>::quiet_NaN());
  float* out = numbers.data() + begin;
  const auto copy = [&](const auto& typed) {
    for_each_present(array, [&](int64_t i) {
      const auto value = typed.Value(i);
      const auto number = static_cast<double>(value);
      if (!missing.empty() && std::floor(number) == number && std::abs(number) < 0x1p63 &&
          is_listed(missing, static_cast<int64_t>(value))) {
        return;
      }
      out[i] = static_cast<float>(value);
    });
  };
  switch (array.type_id()) {
    case arrow::Type::NA:
      return {};
    case arrow::Type::FLOAT:
      copy(static_cast<const arrow::FloatArray&>(array));
      return {};
    case arrow::Type::DOUBLE:
      copy(static_cast<const arrow::DoubleArray&>(array));
      return {};
    case arrow::Type::HALF_FLOAT:
      for_each_present(array, [&](int64_t i) {
        const uint16_t bits = static_cast<const arrow::HalfFloatArray&>(array).Value(i);
        out[i] = arrow::util::Float16::FromBits(bits).ToFloat();
      });
      return {};
    default:
      return visit_whole(array, copy) ? Status() : unreadable_type(array, where);
  }
}

int64_t floor_divide(int64_t value, int64_t by) {
  return value / by - (value % by < 0 ? 1 : 0);
}

Status append_times(const arrow::Array& array, const std::string& where,
                    std::vector<int64_t>& times) {
  const size_t begin = times.size();
  times.resize(begin + static_cast<size_t>(array.length()));
  int64_t* out = times.data() + begin;
  switch (array.type_id()) {
    case arrow::Type::TIMESTAMP: {
      constexpr int64_t kPerSecond[] = {1, 1000, 1'000'000, 1'000'000'000};
      const auto unit = static_cast<const arrow::TimestampType&>(*array.type()).unit();
      const auto& typed = static_cast<const arrow::TimestampArray&>(array);
      for_each_present(array,
                       [&](int64_t i) { out[i] = floor_divide(typed.Value(i), kPerSecond[unit]); });
      return {};
    }
    case arrow::Type::DATE32:
      for_each_present(array, [&](int64_t i) {
        out[i] = int64_t{static_cast<const arrow::Date32Array&>(array).Value(i)} * 86400;
      });
      return {};
    case arrow::Type::DATE64:
      for_each_present(array, [&](int64_t i) {
        out[i] = floor_divide(static_cast<const arrow::Date64Array&>(array).Value(i), 1000);
      });
      return {};
    default: {
      const bool whole = visit_whole(array, [&](const auto& typed) {
        for_each_present(array, [&](int64_t i) { out[i] = static_cast<int64_t>(typed.Value(i)); });
      });
      return whole || array.type_id() == arrow::Type::NA ? Status() : unreadable_type(array, where);
    }
  }
}

/// The items of a list array: [begin, end) of items() are those of row i.
class ListBounds {
 public:
  explicit ListBounds(const arrow::Array& array)
      : array_(array), first_(array.length() == 0 ? 0 : bound(0, 0)) {}
  /// Those of the array's rows, and no others that lie beside them.
  std::shared_ptr<arrow::Array> items() const {
    const int64_t rows = array_.length();
    return values()->Slice(first_, rows == 0 ? 0 : end(rows - 1));
  }
  int64_t begin(int64_t row) const { return bound(row, 0) - first_; }
  int64_t end(int64_t row) const { return bound(row, array_.IsNull(row) ? 0 : 1) - first_; }

 private:
  std::shared_ptr<arrow::Array> values() const {
    switch (array_.type_id()) {
      case arrow::Type::LIST:
        return static_cast<const arrow::ListArray&>(array_).values();
      case arrow::Type::LARGE_LIST:
        return static_cast<const arrow::LargeListArray&>(array_).values();
      default:
        return static_cast<const arrow::FixedSizeListArray&>(array_).values();
    }
  }
  int64_t bound(int64_t row, int64_t side) const {
    switch (array_.type_id()) {
      case arrow::Type::LIST:
        return static_cast<const arrow::ListArray&>(array_).value_offset(row + side);
      case arrow::Type::LARGE_LIST:
        return static_cast<const arrow::LargeListArray&>(array_).value_offset(row + side);
      default:
        return static_cast<const arrow::FixedSizeListArray&>(array_).value_offset(row) +
               side * static_cast<const arrow::FixedSizeListArray&>(array_).value_length();
    }
  }
  const arrow::Array& array_;
  const int64_t first_;  // item of the first row
};

Status append_id_lists(const arrow::Array& array, const ColumnSpec& spec, const std::string& where,
                       ColumnCells& cells) {
  const ListBounds bounds(array);
  IdColumn& ids = cells.ids;
  const int64_t begin = cells.rows(CellKind::id);
  FlatIds flat;
  RECMILL_RETURN_IF_ERROR(flat_ids(*bounds.items(), spec, where, flat));
  auto bad = flat.bad.begin();
  for (int64_t row = 0; row < array.length(); ++row) {
    for (; bad != flat.bad.end() && bad->row < bounds.end(row); ++bad) {
      if (bad->row >= bounds.begin(row)) cells.note_bad(begin + row, bad->status);
    }
    for (int64_t i = bounds.begin(row); i < bounds.end(row); ++i) {
      if (flat.present[static_cast<size_t>(i)])
        ids.ids.push_back(flat.values[static_cast<size_t>(i)]);
    }
    ids.offsets.push_back(static_cast<int64_t>(ids.ids.size()));
  }
  return {};
}

Status append_weight_lists(const arrow::Array& array, const std::string& where,
                           ColumnCells& cells) {
  const ListBounds bounds(array);
  IdColumn& ids = cells.ids;
  const int64_t begin = cells.rows(CellKind::weights);
  std::vector<float> flat;
  RECMILL_RETURN_IF_ERROR(append_numbers(*bounds.items(), {}, where, flat));
  for (int64_t row = 0; row < array.length(); ++row) {
    const auto weights =
        std::span(flat).subspan(static_cast<size_t>(bounds.begin(row)),
                                static_cast<size_t>(bounds.end(row) - bounds.begin(row)));
    ids.weights.insert(ids.weights.end(), weights.begin(), weights.end());
    if (!std::ranges::all_of(weights, [](float weight) { return std::isfinite(weight); })) {
      cells.note_bad(begin + row, Status::Failed("a weight is no finite number"));
    }
    ids.offsets.push_back(static_cast<int64_t>(ids.weights.size()));
  }
  return {};
}

Status append_single_ids(const arrow::Array& array, const ColumnSpec& spec,
                         const std::string& where, ColumnCells& cells) {
  FlatIds flat;
  RECMILL_RETURN_IF_ERROR(flat_ids(array, spec, where, flat));
  IdColumn& ids = cells.ids;
  const int64_t begin = cells.rows(CellKind::id);
  for (const BadRow& bad : flat.bad) cells.note_bad(begin + bad.row, bad.status);
  for (size_t i = 0; i < flat.values.size(); ++i) {
    if (flat.present[i]) ids.ids.push_back(flat.values[i]);
    ids.offsets.push_back(static_cast<int64_t>(ids.ids.size()));
  }
  return {};
}

Status append_groups(const arrow::Array& array, const ColumnSpec& spec, const std::string& where,
                     ColumnCells& cells) {
  FlatIds flat;
  RECMILL_RETURN_IF_ERROR(flat_ids(array, spec, where, flat));
  const int64_t begin = cells.rows(CellKind::group);
  auto bad = flat.bad.begin();
  for (int64_t i = 0; i < array.length(); ++i) {
    if (flat.present[static_cast<size_t>(i)] != 0) continue;
    const bool no_id = bad != flat.bad.end() && bad->row == i;
    cells.note_bad(begin + i, no_id ? (bad++)->status : no_value());
  }
  cells.groups.insert(cells.groups.end(), flat.values.begin(), flat.values.end());
  return {};
}

}  // namespace

void ColumnCells::clear() {
  numbers.clear();
  ids.offsets.assign(1, 0);
  ids.ids.clear();
  ids.weights.clear();
  groups.clear();
  times.clear();
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
      RECMILL_RETURN_IF_ERROR(append_numbers(array, column.spec.missing, where, cells.numbers));
      check_numbers(begin, array.length(), column, cells);
      return {};
    case CellKind::id:
      return column.list ? append_id_lists(array, column.spec, where, cells)
                         : append_single_ids(array, column.spec, where, cells);
    case CellKind::weights:
      return append_weight_lists(array, where, cells);
    case CellKind::group:
      return append_groups(array, column.spec, where, cells);
    case CellKind::time:
      for (int64_t i = 0; i < array.length(); ++i) {
        if (array.IsNull(i)) cells.note_bad(begin + i, no_value());
      }
      return append_times(array, where, cells.times);
  }
  return {};
}

}  // namespace recmill::reader
