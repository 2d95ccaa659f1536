// SPDX-License-Identifier: Apache-2.0
// The definition of what a row of text means, one row at a time and written for reading. The fast
// parser must equal it bit by bit; `recmill verify` reads through it alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "reader/row/number_text.h"
#include "reader/row/text_layout.h"

namespace recmill::reader {

struct RowValues {
  float label = 0;                          // NaN: none, where that may be
  std::vector<float> dense;                 // [dense columns]; NaN: missing
  std::vector<std::vector<uint64_t>> ids;   // [id columns][ids of the bag]; missing: none
  std::vector<std::vector<float>> weights;  // beside ids; filled where the column has weights
  float sample_weight = 1;
  int64_t time = 0;
  uint64_t group = 0;
};

/// The texts of the cells of a row (without its line end), quotes taken off.
Status split_cells(const TextLayout& layout, std::string_view row, std::vector<std::string>& cells);

/// Whether an id is no value: an empty cell, one that is listed, and among integers one that is no
/// number.
bool is_missing_id(IdText text, const NamedValues& missing, std::string_view cell);

/// An id as `text` says: up to 16 hexadecimal digits; a whole number in [-2^63, 2^64), however it
/// is written; or hash_bytes() of the cell.
Result<uint64_t> parse_id(IdText text, std::string_view cell);

/// Replaces `values` by those of one row. Errors name the column and the cell's text.
Status parse_row(const TextLayout& layout, std::string_view row, RowValues& values);

/// Puts the value of one cell into `values`; a bag is replaced.
Status parse_cell(const TextColumn& column, std::string_view cell, RowValues& values);

/// True when the last character of `row` is a UTF-8 sequence that lacks bytes.
bool ends_inside_character(std::string_view row);

}  // namespace recmill::reader
