// SPDX-License-Identifier: Apache-2.0
// The template of a user's own that docs/ADDING.md shows, as the page has it. RECMILL_ADDING is the
// page's path.
#pragma once

#include <string>

#include "base/files.h"

namespace recmill::kernels::codegen {

inline std::string documented_template() {
  const std::string page = *read_text(posix_files(), RECMILL_ADDING);
  const std::string open = "```cpp\n", close = "\n```\n";
  const size_t begin = page.find(open);
  RECMILL_CHECK(begin != std::string::npos);
  const size_t end = page.find(close, begin);
  return page.substr(begin + open.size(), end + 1 - begin - open.size());
}

/// `text` with its one occurrence of `from` as `to`.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  RECMILL_CHECK(at != std::string::npos && text.find(from, at + 1) == std::string::npos, from);
  return text.replace(at, from.size(), to);
}

}  // namespace recmill::kernels::codegen
