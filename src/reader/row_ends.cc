// SPDX-License-Identifier: Apache-2.0
#include "reader/row_ends.h"

#include <cstring>

namespace recmill::reader {
namespace {

// RFC 4180: a quote opens only at the beginning of a cell; inside, doubled quotes stand for one.
void find_quoted_row_ends(std::string_view text, const TextLayout& layout,
                          std::vector<uint32_t>& ends) {
  bool cell_begins = true, quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == layout.quote) quoted = false;  // the second of a doubled one opens it again
      cell_begins = c == layout.quote;
    } else if (c == layout.quote && cell_begins) {
      quoted = true;
    } else {
      cell_begins = c == layout.delimiter || c == '\n';
      if (c == '\n') ends.push_back(static_cast<uint32_t>(i + 1));
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
  for (const char* at = begin; at < end;) {
    at = static_cast<const char*>(std::memchr(at, '\n', end - at));
    if (at == nullptr) return;
    ends.push_back(static_cast<uint32_t>(++at - begin));
  }
}

}  // namespace recmill::reader
