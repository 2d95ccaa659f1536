// SPDX-License-Identifier: Apache-2.0
// What a raw log's columns are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schema/options.h"

namespace recmill {

enum class ColumnRole { label, dense, id, sample_weight, time, group, ignore };
template <>
struct EnumNames<ColumnRole> {
  static constexpr std::array names{
      std::pair{ColumnRole::label, std::string_view{"label"}},
      std::pair{ColumnRole::dense, std::string_view{"dense"}},
      std::pair{ColumnRole::id, std::string_view{"id"}},
      std::pair{ColumnRole::sample_weight, std::string_view{"sample_weight"}},
      std::pair{ColumnRole::time, std::string_view{"time"}},
      std::pair{ColumnRole::group, std::string_view{"group"}},
      std::pair{ColumnRole::ignore, std::string_view{"ignore"}}};
};

/// How the text of an id cell becomes a 64-bit id: hexadecimal digits, a decimal integer (negative
/// ones by two's complement), or hash_bytes() of the text.
enum class IdText { hex, integer, text };
template <>
struct EnumNames<IdText> {
  static constexpr std::array names{std::pair{IdText::hex, std::string_view{"hex"}},
                                    std::pair{IdText::integer, std::string_view{"integer"}},
                                    std::pair{IdText::text, std::string_view{"text"}}};
};

/// What a column that is derived from a time has of it.
enum class TimePart { none, hour, weekday };
template <>
struct EnumNames<TimePart> {
  static constexpr std::array names{std::pair{TimePart::none, std::string_view{"none"}},
                                    std::pair{TimePart::hour, std::string_view{"hour"}},
                                    std::pair{TimePart::weekday, std::string_view{"weekday"}}};
};

struct ColumnSpec {
  std::string name;
  ColumnRole role = ColumnRole::ignore;
  IdText id_text = IdText::text;  // role id and group
  std::string list_separator;     // role id: cells are lists split at this text; empty: one id
  std::string weight_separator;   // role id: "id<separator>weight" in each list item; empty: none
  std::vector<std::string> missing;  // values that mean missing, besides the empty cell
  std::string from;                  // a derived column: of this time column ...
  TimePart part = TimePart::none;    // ... this part
};
template <typename Visitor>
void describe(Visitor& v, ColumnSpec& o) {
  v("name", o.name, "name of the column");
  v("role", o.role, "what the column is: label, dense, id, sample_weight, time, group or ignore");
  v("id_text", o.id_text, "how an id is written: hex, integer, or text (hashed to 64 bits)");
  v("list_separator", o.list_separator, "one to 16 characters that split a cell into several ids");
  v("weight_separator", o.weight_separator, "character between an id and its weight");
  v("missing", o.missing,
    "values that mean 'no value', besides the empty cell: numbers by value, text by its bytes; in "
    "lists such items are left out");
  v("from", o.from, "dense or id: the time column that this one is a part of; it is in no file");
  v("part", o.part, "from: hour (0 to 23) or weekday (0 is Monday), UTC");
}

/// The columns of a data set that a batch carries, in file order within each role.
struct DataSchema {
  std::vector<std::string> dense;     // names of ColumnBatch::dense
  std::vector<std::string> ids;       // names of ColumnBatch::ids
  std::vector<std::string> bags;      // those of `ids` whose cells may hold several ids
  std::vector<std::string> weighted;  // those of `bags` whose ids carry weights
  bool has_sample_weight = false;
  bool has_time = false;
  bool has_group = false;
  bool operator==(const DataSchema&) const = default;
};

}  // namespace recmill
