// SPDX-License-Identifier: Apache-2.0
// Lines of Criteo TSV: both parsers take the same rows and refuse the same ones.
#include "base/testing/fuzz.h"
#include "reader/testing/text_rows.h"

namespace recmill {

std::vector<std::string> fuzz::seeds() {
  using reader::criteo_row;
  return {criteo_row() + "\n" + criteo_row("", "") + "\r\n" + criteo_row("-12", "0"),
          criteo_row("12345678", "0123456789abcdef") + "\n"};
}

void fuzz::feed(const std::string& bytes) {
  static const reader::TextLayout layout = *reader::criteo_layout({});
  RECMILL_CHECK(reader::parse_all(layout, bytes, reader::ParserKind::plain) ==
                reader::parse_all(layout, bytes, reader::ParserKind::fast));
}

}  // namespace recmill
