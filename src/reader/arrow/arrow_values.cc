// SPDX-License-Identifier: Apache-2.0
#include "reader/arrow/arrow_values.h"

#include <arrow/extension_type.h>
#include <arrow/type_traits.h>
#include <arrow/util/float16.h>
#include <arrow/util/ree_util.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "reader/arrow/arrow_files.h"
#include "reader/row/plain_text_parser.h"

namespace recmill::reader {
namespace {

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

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

/// Calls visit(value_at, round) for the floats, value_at(i) being number i and round(x) what a
/// number of the type is for the float64 `x`; false for any other type.
template <typename Visit>
bool visit_floats(const arrow::Array& array, Visit&& visit) {
  switch (array.type_id()) {
    case arrow::Type::FLOAT:
      visit([&](int64_t i) { return static_cast<const arrow::FloatArray&>(array).Value(i); },
            [](double x) { return static_cast<float>(x); });
      return true;
    case arrow::Type::DOUBLE:
      visit([&](int64_t i) { return static_cast<const arrow::DoubleArray&>(array).Value(i); },
            [](double x) { return x; });
      return true;
    case arrow::Type::HALF_FLOAT:
      visit(
          [&](int64_t i) {
            const uint16_t bits = static_cast<const arrow::HalfFloatArray&>(array).Value(i);
            return arrow::util::Float16::FromBits(bits).ToFloat();
          },
          [](double x) { return arrow::util::Float16::FromDouble(x).ToFloat(); });
      return true;
    default:
      return false;
  }
}

/// Calls visit(text_at), text_at(i) being the digits of decimal i; false for any other type.
template <typename Visit>
bool visit_decimals(const arrow::Array& array, Visit&& visit) {
  const auto digits = [&](const auto& typed) {
    visit([&typed](int64_t i) { return typed.FormatValue(i); });
    return true;
  };
  switch (array.type_id()) {
    case arrow::Type::DECIMAL32:
      return digits(static_cast<const arrow::Decimal32Array&>(array));
    case arrow::Type::DECIMAL64:
      return digits(static_cast<const arrow::Decimal64Array&>(array));
    case arrow::Type::DECIMAL128:
      return digits(static_cast<const arrow::Decimal128Array&>(array));
    case arrow::Type::DECIMAL256:
      return digits(static_cast<const arrow::Decimal256Array&>(array));
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
    case arrow::Type::STRING_VIEW:
    case arrow::Type::BINARY_VIEW:
      return views(static_cast<const arrow::BinaryViewArray&>(array));
    case arrow::Type::FIXED_SIZE_BINARY:
      return views(static_cast<const arrow::FixedSizeBinaryArray&>(array));
    default:
      return false;
  }
}

Status unreadable_type(const arrow::Array& array, const std::string& where) {
  return Status::BadRequest(where + ": cannot read values of type " + array.type()->ToString());
}

/// Values that are in another array, and which of them each row has; -1: none.
struct Coded {
  std::shared_ptr<arrow::Array> values;
  std::vector<int64_t> codes;  // [rows]
};

Result<Coded> codes_of(const arrow::DictionaryArray& array, const std::string& where) {
  Coded coded{array.dictionary(), std::vector<int64_t>(static_cast<size_t>(array.length()), -1)};
  Status status;
  for_each_present(array, [&](int64_t i) {
    const int64_t code = array.GetValueIndex(i);
    if (code < 0 || code >= coded.values->length()) {
      status =
          Status::Failed(where + ": index " + std::to_string(code) +
                         " is not in its dictionary of " + std::to_string(coded.values->length()));
      return;
    }
    coded.codes[static_cast<size_t>(i)] = code;
  });
  RECMILL_RETURN_IF_ERROR(status);
  return coded;
}

Coded codes_of(const arrow::RunEndEncodedArray& array) {
  Coded coded{array.values(), {}};
  for (int64_t i = 0; i < array.length(); ++i) {
    coded.codes.push_back(arrow::ree_util::FindPhysicalIndex(*array.data(), i, array.offset()));
  }
  return coded;
}

/// Without values: they are in the array itself.
Result<Coded> coded_values(const arrow::Array& array, const std::string& where) {
  switch (array.type_id()) {
    case arrow::Type::DICTIONARY:
      return codes_of(static_cast<const arrow::DictionaryArray&>(array), where);
    case arrow::Type::RUN_END_ENCODED:
      return codes_of(static_cast<const arrow::RunEndEncodedArray&>(array));
    case arrow::Type::EXTENSION: {
      Coded coded{static_cast<const arrow::ExtensionArray&>(array).storage(), {}};
      for (int64_t i = 0; i < array.length(); ++i) coded.codes.push_back(i);
      return coded;
    }
    default:
      return Coded();
  }
}

/// The values of rows from those that they have codes of.
template <typename T>
void gather(const FlatValues<T>& from, const std::vector<int64_t>& codes, FlatValues<T>& to) {
  for (size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] < 0) continue;
    to.values[i] = from.values[static_cast<size_t>(codes[i])];
    to.present[i] = from.present[static_cast<size_t>(codes[i])];
    if (from.bad.empty()) continue;
    const auto bad = std::ranges::lower_bound(from.bad, codes[i], {}, &BadRow::row);
    if (bad != from.bad.end() && bad->row == codes[i]) {
      to.bad.push_back({static_cast<int64_t>(i), bad->status});
    }
  }
}

template <typename T>
void start(const arrow::Array& array, FlatValues<T>& flat) {
  flat.values.assign(static_cast<size_t>(array.length()), 0);
  flat.present.assign(static_cast<size_t>(array.length()), 0);
  flat.bad.clear();
}

template <typename T>
void put(FlatValues<T>& flat, int64_t i, T value) {
  flat.values[static_cast<size_t>(i)] = value;
  flat.present[static_cast<size_t>(i)] = 1;
}

template <typename T>
void put_parsed(FlatValues<T>& flat, int64_t i, Result<T> value) {
  value.ok() ? put(flat, i, *value) : flat.bad.push_back({i, value.status()});
}

/// The id that a float is: the whole number of 64 bits, negative ones by two's complement.
Result<uint64_t> id_of(double value) {
  const bool whole = value == std::trunc(value) && value >= -0x1p63 && value < 0x1p64;
  if (whole && value < 0) return static_cast<uint64_t>(static_cast<int64_t>(value));
  if (whole) return static_cast<uint64_t>(value);
  char text[32];
  return not_a({text, std::to_chars(text, text + sizeof text, value).ptr}, "an integer id");
}

// Ids of an array, those that are not missing; false for any other type.

bool put_text_ids(const arrow::Array& array, IdText id_text, const NamedValues& missing,
                  FlatIds& flat) {
  return visit_text(array, [&](const auto& text_at) {
    for_each_present(array, [&](int64_t i) {
      const std::string_view text = text_at(i);
      if (!is_missing_id(id_text, missing, text)) put_parsed(flat, i, parse_id(id_text, text));
    });
  });
}

bool put_integer_ids(const arrow::Array& array, const NamedValues& missing, FlatIds& flat) {
  return visit_whole(array, [&](const auto& typed) {
    for_each_present(array, [&](int64_t i) {
      const auto value = typed.Value(i);
      // Signed types extend their sign: -1 is 2^64 - 1, whatever the width.
      if (!missing.has_number(value)) put(flat, i, static_cast<uint64_t>(value));
    });
  });
}

bool put_float_ids(const arrow::Array& array, const NamedValues& missing, FlatIds& flat) {
  return visit_floats(array, [&](const auto& value_at, const auto& round) {
    for_each_present(array, [&](int64_t i) {
      const auto value = value_at(i);
      if (std::isnan(value) || missing.has_half(value, round)) return;
      put_parsed(flat, i, id_of(value));
    });
  });
}

bool put_decimal_ids(const arrow::Array& array, const NamedValues& missing, FlatIds& flat) {
  return visit_decimals(array, [&](const auto& text_at) {
    for_each_present(array, [&](int64_t i) {
      const std::string text = text_at(i);
      if (missing.has_whole_in(text)) return;
      put_parsed(flat, i, parse_id(IdText::integer, text));
    });
  });
}

int64_t floor_divide(int64_t value, int64_t by) {
  return value / by - (value % by < 0 ? 1 : 0);
}

/// Timestamps and dates as unix seconds; false for any other type.
bool put_dates(const arrow::Array& array, FlatTimes& flat) {
  switch (array.type_id()) {
    case arrow::Type::TIMESTAMP: {
      constexpr int64_t kPerSecond[] = {1, 1000, 1'000'000, 1'000'000'000};
      const auto unit = static_cast<const arrow::TimestampType&>(*array.type()).unit();
      const auto& typed = static_cast<const arrow::TimestampArray&>(array);
      for_each_present(
          array, [&](int64_t i) { put(flat, i, floor_divide(typed.Value(i), kPerSecond[unit])); });
      return true;
    }
    case arrow::Type::DATE32:
      for_each_present(array, [&](int64_t i) {
        put(flat, i, int64_t{static_cast<const arrow::Date32Array&>(array).Value(i)} * 86400);
      });
      return true;
    case arrow::Type::DATE64:
      for_each_present(array, [&](int64_t i) {
        put(flat, i, floor_divide(static_cast<const arrow::Date64Array&>(array).Value(i), 1000));
      });
      return true;
    default:
      return false;
  }
}

bool put_text_times(const arrow::Array& array, FlatTimes& flat) {
  return visit_text(array, [&](const auto& text_at) {
    for_each_present(array, [&](int64_t i) {
      const std::string_view text = text_at(i);
      if (!is_no_number(text)) put_parsed(flat, i, parse_time(text));
    });
  });
}

/// The second that has begun, as of a text.
Result<int64_t> time_of(double value) {
  const double second = std::floor(value);
  if (second >= -0x1p63 && second < 0x1p63) return static_cast<int64_t>(second);
  char text[32];
  return not_a({text, std::to_chars(text, text + sizeof text, value).ptr}, "a time (unix seconds)");
}

/// Numbers of any type, rounded down.
bool put_number_times(const arrow::Array& array, FlatTimes& flat) {
  const bool whole = visit_whole(array, [&](const auto& typed) {
    for_each_present(array, [&](int64_t i) {
      const auto value = typed.Value(i);
      if (std::in_range<int64_t>(+value)) {
        put(flat, i, static_cast<int64_t>(value));
      } else {
        put_parsed(flat, i, time_of(static_cast<double>(value)));
      }
    });
  });
  return whole ||
         visit_floats(array,
                      [&](const auto& value_at, const auto&) {
                        for_each_present(array, [&](int64_t i) {
                          const auto value = value_at(i);
                          if (!std::isnan(value)) put_parsed(flat, i, time_of(value));
                        });
                      }) ||
         visit_decimals(array, [&](const auto& text_at) {
           for_each_present(array, [&](int64_t i) { put_parsed(flat, i, parse_time(text_at(i))); });
         });
}

// Numbers of an array to `out`, those that are not missing; false for any other type.

bool put_integers(const arrow::Array& array, const NamedValues& missing, float* out) {
  return visit_whole(array, [&](const auto& typed) {
    for_each_present(array, [&](int64_t i) {
      const auto value = typed.Value(i);
      if (!missing.has_number(value)) out[i] = static_cast<float>(value);
    });
  });
}

bool put_floats(const arrow::Array& array, const NamedValues& missing, float* out) {
  return visit_floats(array, [&](const auto& value_at, const auto& round) {
    for_each_present(array, [&](int64_t i) {
      const auto value = value_at(i);
      if (!missing.has_half(value, round)) out[i] = static_cast<float>(value);
    });
  });
}

bool put_decimals(const arrow::Array& array, const NamedValues& missing, float* out) {
  return visit_decimals(array, [&](const auto& text_at) {
    for_each_present(array, [&](int64_t i) {
      const std::string text = text_at(i);
      if (missing.has_number_in(text)) return;
      const auto number = parse_number(text);
      out[i] = number.ok() ? *number : std::numeric_limits<float>::infinity();
    });
  });
}

}  // namespace

Status flat_ids(const arrow::Array& array, IdText id_text, const NamedValues& missing,
                const std::string& where, FlatIds& flat) {
  start(array, flat);
  RECMILL_ASSIGN_OR_RETURN(const Coded coded, coded_values(array, where));
  if (coded.values != nullptr) {
    FlatIds values;
    RECMILL_RETURN_IF_ERROR(flat_ids(*coded.values, id_text, missing, where, values));
    gather(values, coded.codes, flat);
    return {};
  }
  const bool known = array.type_id() == arrow::Type::NA ||
                     put_text_ids(array, id_text, missing, flat) ||
                     put_integer_ids(array, missing, flat) || put_float_ids(array, missing, flat) ||
                     put_decimal_ids(array, missing, flat);
  return known ? Status() : unreadable_type(array, where);
}

Status flat_times(const arrow::Array& array, const NamedValues& missing, const std::string& where,
                  FlatTimes& flat) {
  start(array, flat);
  RECMILL_ASSIGN_OR_RETURN(const Coded coded, coded_values(array, where));
  if (coded.values != nullptr) {
    FlatTimes values;
    RECMILL_RETURN_IF_ERROR(flat_times(*coded.values, missing, where, values));
    gather(values, coded.codes, flat);
    return {};
  }
  const bool known = array.type_id() == arrow::Type::NA || put_dates(array, flat) ||
                     put_text_times(array, flat) || put_number_times(array, flat);
  if (!known) return unreadable_type(array, where);
  if (missing.empty()) return {};
  for (size_t i = 0; i < flat.values.size(); ++i) {
    if (missing.has_time(flat.values[i])) flat.present[i] = 0;
  }
  return {};
}

Status flat_labels(const arrow::Array& array, const LabelRule& rule, const NamedValues& missing,
                   const std::string& where, FlatValues<float>& flat) {
  start(array, flat);
  RECMILL_ASSIGN_OR_RETURN(const Coded coded, coded_values(array, where));
  if (coded.values != nullptr) {
    FlatValues<float> values;
    RECMILL_RETURN_IF_ERROR(flat_labels(*coded.values, rule, missing, where, values));
    gather(values, coded.codes, flat);
    return {};
  }
  const bool known = visit_text(array, [&](const auto& text_at) {
    for_each_present(array, [&](int64_t i) {
      const std::string_view text = text_at(i);
      if (!is_no_number(text) && !missing.has_number_in(text)) put_parsed(flat, i, rule.read(text));
    });
  });
  return known ? Status() : unreadable_type(array, where);
}

Status append_numbers(const arrow::Array& array, const NamedValues& missing,
                      const std::string& where, std::vector<float>& numbers) {
  RECMILL_ASSIGN_OR_RETURN(const Coded coded, coded_values(array, where));
  if (coded.values != nullptr) {
    std::vector<float> values;
    RECMILL_RETURN_IF_ERROR(append_numbers(*coded.values, missing, where, values));
    for (const int64_t code : coded.codes) {
      numbers.push_back(code < 0 ? kMissing : values[static_cast<size_t>(code)]);
    }
    return {};
  }
  const size_t begin = numbers.size();
  numbers.resize(begin + static_cast<size_t>(array.length()), kMissing);
  float* const out = numbers.data() + begin;
  const bool known = array.type_id() == arrow::Type::NA || put_integers(array, missing, out) ||
                     put_floats(array, missing, out) || put_decimals(array, missing, out);
  return known ? Status() : unreadable_type(array, where);
}

Result<std::shared_ptr<arrow::Array>> field_inside(std::shared_ptr<arrow::Array> array,
                                                   const std::vector<std::string>& inside,
                                                   const std::string& where) {
  for (const std::string& name : inside) {
    if (array->type_id() != arrow::Type::STRUCT) return unreadable_type(*array, where);
    const int field = static_cast<const arrow::StructType&>(*array->type()).GetFieldIndex(name);
    if (field < 0) return unreadable_type(*array, where);
    RECMILL_ASSIGN_FROM_ARROW(
        array, static_cast<const arrow::StructArray&>(*array).GetFlattenedField(field), where);
  }
  return array;
}

Result<ListRows> rows_of_lists(const arrow::Array& array, const std::string& item,
                               const std::string& where) {
  ListRows rows;
  const auto take = [&](const auto& lists) {
    int64_t first = std::numeric_limits<int64_t>::max(), last = 0;
    for (int64_t i = 0; i < lists.length(); ++i) {
      const int64_t length = lists.IsNull(i) ? 0 : int64_t{lists.value_length(i)};
      rows.begin.push_back(length == 0 ? last : int64_t{lists.value_offset(i)});
      rows.end.push_back(rows.begin.back() + length);
      if (length == 0) continue;
      first = std::min(first, rows.begin.back());
      last = std::max(last, rows.end.back());
    }
    first = std::min(first, last);
    for (size_t i = 0; i < rows.begin.size(); ++i) {
      const bool none = rows.begin[i] == rows.end[i];
      rows.begin[i] = none ? 0 : rows.begin[i] - first;
      rows.end[i] = none ? 0 : rows.end[i] - first;
    }
    rows.items = lists.values()->Slice(first, last - first);
  };
  switch (array.type_id()) {
    case arrow::Type::LIST:
    case arrow::Type::MAP:
      take(static_cast<const arrow::ListArray&>(array));
      break;
    case arrow::Type::LARGE_LIST:
      take(static_cast<const arrow::LargeListArray&>(array));
      break;
    case arrow::Type::LIST_VIEW:
      take(static_cast<const arrow::ListViewArray&>(array));
      break;
    case arrow::Type::LARGE_LIST_VIEW:
      take(static_cast<const arrow::LargeListViewArray&>(array));
      break;
    case arrow::Type::FIXED_SIZE_LIST:
      take(static_cast<const arrow::FixedSizeListArray&>(array));
      break;
    default:
      return unreadable_type(array, where);
  }
  if (item.empty()) return rows;
  RECMILL_ASSIGN_OR_RETURN(rows.items, field_inside(rows.items, {item}, where));
  return rows;
}

}  // namespace recmill::reader
