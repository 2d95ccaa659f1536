// SPDX-License-Identifier: Apache-2.0
#include "reader/lines/row_ends.h"

#include <algorithm>
#include <cstring>

namespace recmill::reader {
namespace {

bool is_blank(char c, const TextLayout& layout) {
  return c == '\r' || ((c == ' ' || c == '\t') && !layout.delimiter.starts_with(c));
}

// libsvm: a comment that begins a line is all of it.
bool is_comment(char first, const TextLayout& layout) {
  return first == '#' && layout.rows == RowForm::libsvm;
}

// RFC 4180: a quote opens only at the beginning of a cell; inside, doubled quotes stand for one.
void find_quoted_row_ends(std::string_view text, const TextLayout& layout,
                          std::vector<uint32_t>& ends) {
  bool cell_begins = true, quoted = false;
  size_t line = 0;  // where the row began, or a blank line before it
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == layout.quote) quoted = false;  // the second of a doubled one opens it again
      cell_begins = c == layout.quote;
    } else if (c == layout.quote && cell_begins) {
      quoted = true;
    } else if (c == layout.delimiter[0] && text.substr(i).starts_with(layout.delimiter)) {
      i += layout.delimiter.size() - 1;
      cell_begins = true;
    } else {
      cell_begins = c == '\n';
      if (c != '\n') continue;
      if (!is_blank_line(text.substr(line, i - line), layout)) {
        ends.push_back(static_cast<uint32_t>(i + 1));
      }
      line = i + 1;
    }
  }
}

}  // namespace

void find_row_ends(std::string_view text, const TextLayout& layout, std::vector<uint32_t>& ends) {
  if (layout.quote != 0 && text.find(layout.quote) != std::string_view::npos) {
    find_quoted_row_ends(text, layout, ends);
    return;
  }
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  for (const char *line = begin, *at = nullptr; line < end; line = at + 1) {
    at = static_cast<const char*>(std::memchr(line, '\n', end - line));
    if (at == nullptr) return;
    // Mostly the first character tells.
    if (line == at || ((is_blank(*line, layout) || is_comment(*line, layout)) &&
                       is_blank_line({line, static_cast<size_t>(at - line)}, layout)))
      continue;
    ends.push_back(static_cast<uint32_t>(at + 1 - begin));
  }
}

bool is_blank_line(std::string_view line, const TextLayout& layout) {
  const auto text = std::ranges::find_if(line, [&](char c) { return !is_blank(c, layout); });
  return text == line.end() || is_comment(*text, layout);
}

size_t blank_lines(std::string_view text, const TextLayout& layout) {
  size_t line = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_comment(text[i], layout)) i = std::min(text.find('\n', i), text.size() - 1);
    if (text[i] != '\n' && !is_blank(text[i], layout)) return line;
    if (text[i] == '\n') line = i + 1;
  }
  return line;
}

TextRow trim_row(const char* text, uint32_t begin, uint32_t end, const TextLayout& layout) {
  begin += static_cast<uint32_t>(blank_lines({text + begin, end - begin}, layout));
  if (end > begin && text[end - 1] == '\n') --end;
  if (end > begin && text[end - 1] == '\r') --end;
  return {begin, end - begin, 0};
}

}  // namespace recmill::reader
