// SPDX-License-Identifier: Apache-2.0
// CSV with every kind of column: both parsers take the same rows and refuse the same ones.
#include "base/testing/fuzz.h"
#include "reader/testing/text_rows.h"

namespace recmill {

std::vector<std::string> fuzz::seeds() {
  return {reader::mixed_rows()};
}

void fuzz::feed(const std::string& bytes) {
  static const reader::TextLayout layout = reader::mixed_layout();
  RECMILL_CHECK(reader::parse_all(layout, bytes, reader::ParserKind::plain) ==
                reader::parse_all(layout, bytes, reader::ParserKind::fast));
}

}  // namespace recmill
