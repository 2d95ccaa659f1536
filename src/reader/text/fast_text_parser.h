// SPDX-License-Identifier: Apache-2.0
// Rows of text to columns with SIMD (Highway, chosen at run time): delimiters of 64 bytes at once
// as a bit mask, then the cells of a column in eight rows at once where they have 8 characters at
// most. Longer cells are parsed one at a time. Whatever is out of the ordinary - quotes, signs in
// ids, long numbers, any error - goes to the plain parser, row by row or cell by cell; so both give
// the same bits and the same errors.
#pragma once

#include <span>
#include <vector>

#include "reader/lines/row_ends.h"
#include "reader/row/text_layout.h"
#include "reader/text/parsed_piece.h"

namespace recmill::reader {

/// Columns in a row that are parsed alike.
struct ColumnRun {
  enum class Kind { ignore, label, dense, hex, integer, text, plain } kind = Kind::ignore;
  int first = 0, count = 0;  // columns
  int target = 0;            // of the first: index among dense or id columns
};

struct FastLayout {
  explicit FastLayout(const TextLayout& text_layout);
  const TextLayout* layout;  // must outlive this
  std::vector<ColumnRun> runs;
};

/// Parses rows into a piece, from its row `first` on, behind those that it has. Returns their
/// number, or that of the first row that parse_row() refuses. The delimiter is one character.
int64_t parse_rows_fast(const FastLayout& layout, const char* text, std::span<const TextRow> rows,
                        int64_t first, ParsedPiece& piece);

}  // namespace recmill::reader
