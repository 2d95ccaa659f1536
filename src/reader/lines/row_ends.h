// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "reader/row/text_layout.h"

namespace recmill::reader {

/// Bytes that may be read before and after every text that is handed to a parser.
inline constexpr size_t kTextPadding = 64;
/// A longer row is an error: a quote that is never closed, or no text at all.
inline constexpr size_t kMaxRowBytes = size_t{16} << 20;

/// A row within a text: its line end (LF or CR LF) is left out.
struct TextRow {
  uint32_t begin = 0;
  uint32_t size = 0;
  uint32_t layout = 0;  // which of the parser's layouts it has
};

/// The start of a file without the byte order mark that some programs put there.
inline std::string_view after_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

/// Appends, for each whole row of `text`, the offset past its line end. `text` starts at a line and
/// is shorter than 4 GiB; what follows the last line end is no whole row. A blank line is none: it
/// goes with the row behind it.
void find_row_ends(std::string_view text, const TextLayout& layout, std::vector<uint32_t>& ends);

/// Whether `line`, one without its LF, has nothing but spaces, and tabs, that are no delimiter.
bool is_blank_line(std::string_view line, const TextLayout& layout);

/// The bytes of the blank lines at the front of `text`, which starts at a line.
size_t blank_lines(std::string_view text, const TextLayout& layout);

/// The row at [begin, end) of `text`, where `begin` is the end of the row before it and `end` past
/// its line end or the end of the text.
TextRow trim_row(const char* text, uint32_t begin, uint32_t end, const TextLayout& layout);

}  // namespace recmill::reader
