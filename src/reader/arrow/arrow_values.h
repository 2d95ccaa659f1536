// SPDX-License-Identifier: Apache-2.0
// The values of an Arrow array of any type that a column may have, one by one.
#pragma once

#include <arrow/array.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "reader/bad_row.h"
#include "reader/label_rule.h"
#include "reader/row/named_values.h"
#include "schema/column_spec.h"

namespace recmill::reader {

/// Values of an array, and which of them are there.
template <typename T>
struct FlatValues {
  std::vector<T> values;         // [length]
  std::vector<uint8_t> present;  // [length]
  std::vector<BadRow> bad;       // those that are not what they must be, ascending; not present
};
using FlatIds = FlatValues<uint64_t>;
using FlatTimes = FlatValues<int64_t>;

/// Values as ids: integers as they are, text as `id_text` says, floats and decimals that are whole
/// as the integer that they are. What is listed as missing, and a NaN, is not there. Errors are no
/// fault of a value.
Status flat_ids(const arrow::Array& array, IdText id_text, const NamedValues& missing,
                const std::string& where, FlatIds& flat);

/// Values as times: whole numbers as they are, timestamps and dates as unix seconds, text as
/// parse_time() reads it.
Status flat_times(const arrow::Array& array, const NamedValues& missing, const std::string& where,
                  FlatTimes& flat);

/// Text as labels. A cell that is empty or listed as missing is not there.
Status flat_labels(const arrow::Array& array, const LabelRule& rule, const NamedValues& missing,
                   const std::string& where, FlatValues<float>& flat);

/// Appends values as numbers, rounded to float once; NaN: not there, or listed as missing.
Status append_numbers(const arrow::Array& array, const NamedValues& missing,
                      const std::string& where, std::vector<float>& numbers);

/// The field of a struct of structs that `inside` leads to, null where one of them is.
Result<std::shared_ptr<arrow::Array>> field_inside(std::shared_ptr<arrow::Array> array,
                                                   const std::vector<std::string>& inside,
                                                   const std::string& where);

/// The rows of an array of lists of any kind, or of maps.
struct ListRows {
  std::shared_ptr<arrow::Array> items;  // those of all rows, perhaps others between them
  std::vector<int64_t> begin, end;      // [rows]: of `items`; a null row has none
};

/// `item`: of items that are structs, the field that is wanted; empty: they are none.
Result<ListRows> rows_of_lists(const arrow::Array& array, const std::string& item,
                               const std::string& where);

}  // namespace recmill::reader
