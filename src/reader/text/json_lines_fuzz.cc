// SPDX-License-Identifier: Apache-2.0
// The bytes are rows of JSON lines, with a column of each role: every row is taken or refused in
// one line.
#include "base/testing/fuzz.h"
#include "reader/row/json_row.h"
#include "reader/testing/text_rows.h"

namespace recmill {
namespace {

reader::TextLayout layout_of(const std::string& head) {
  DataOptions options = reader::mixed_options();
  options.format = DataFormat::json_lines;
  options.columns[1].name = "a.b";
  auto layout = reader::json_layout(options, {head});
  RECMILL_CHECK(layout.ok(), layout.status().message());
  return *std::move(layout);
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  return {
      "{\"y\": 1, \"a\": {\"b\": 0.5}, \"d2\": \"NA\", \"hex\": \"ff\", \"number\": 12, \"word\": "
      "\"x\", "
      "\"list\": [1, 2.0, null], \"pairs\": {\"a\": 1, \"b\": 0.5}, \"user\": \"u1\", \"when\": "
      "100, \"w\": 1}\n",
      "{\"y\": true, \"a.b\": -0, \"list\": \"1|2\", \"pairs\": [{\"id\": \"a\", \"weight\": "
      "1e-3}], "
      "\"user\": 7, \"when\": \"2014-10-21\", \"w\": \"2\", \"rest\": [[{}]]}\r\n\n{\"y\": 0}\n"};
}

void fuzz::feed(const std::string& bytes) {
  const reader::TextLayout layout = layout_of(bytes);
  for (const std::string& error :
       reader::parse_all(layout, bytes, reader::ParserKind::fast).errors) {
    RECMILL_CHECK(error.find('\n') == std::string::npos && error.size() < 1000, error);
  }
}

}  // namespace recmill
