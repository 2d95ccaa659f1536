// SPDX-License-Identifier: Apache-2.0
// A row that is one JSON object on one line, as the cells of its columns.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "reader/row/plain_text_parser.h"
#include "reader/row/text_layout.h"

namespace recmill::reader {

/// The columns of a layout by the names of their keys; "a.b" is key b of the object a, unless a key
/// has that very name.
struct JsonColumns {
  std::unordered_map<std::string, int> by_name;
};

/// An element of a list, or a key of an object with its value.
struct JsonItem {
  bool number = false;  // else a string; null is an empty one
  std::string text;
  bool has_weight = false;
  std::string weight;
};

struct JsonCell {
  enum class Kind { string, number, list, map, other } kind = Kind::string;
  int keys = 0;                 // on the way to it; 0: there is none
  std::string text;             // string, number (true is 1); null is an empty string
  std::vector<JsonItem> items;  // list, map
};

/// Replaces `cells` by those of the columns. Fails where `row` is not a JSON object, or has a key
/// twice.
Status split_json(const TextLayout& layout, std::string_view row, std::vector<JsonCell>& cells);

/// The same as text: equal cells, equal texts.
Status split_json_texts(const TextLayout& layout, std::string_view row,
                        std::vector<std::string>& texts);

/// Replaces `values` by those of one row. Strings are what the text of a cell is; numbers among ids
/// are whole numbers; lists are bags, and objects bags of keys with weights.
Status parse_json_row(const TextLayout& layout, std::string_view row, RowValues& values);

/// Marks the id columns of `layout` that hold lists, or objects, in rows of `text`, and in `seen`
/// [columns] those of which a row has the key.
void find_json_bags(std::string_view text, TextLayout& layout, std::vector<bool>& seen);

}  // namespace recmill::reader
