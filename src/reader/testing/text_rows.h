// SPDX-License-Identifier: Apache-2.0
// Rows of text, and what a parser makes of them.
#pragma once

#include <string>
#include <vector>

#include "reader/row_ends.h"
#include "reader/testing/samples_of.h"
#include "reader/text_parser.h"

namespace recmill::reader {

inline ColumnSpec column(const char* name, ColumnRole role, IdText id_text = IdText::text) {
  ColumnSpec spec;
  spec.name = name;
  spec.role = role;
  spec.id_text = id_text;
  return spec;
}

// Every kind of column, quotes, lists, weights and words for 'missing'.
inline DataOptions mixed_options() {
  DataOptions options;
  options.format = DataFormat::csv;
  options.header = false;
  options.columns = {column("y", ColumnRole::label),
                     column("d1", ColumnRole::dense),
                     column("d2", ColumnRole::dense),
                     column("hex", ColumnRole::id, IdText::hex),
                     column("number", ColumnRole::id, IdText::integer),
                     column("word", ColumnRole::id),
                     column("list", ColumnRole::id, IdText::integer),
                     column("rest", ColumnRole::ignore),
                     column("pairs", ColumnRole::id),
                     column("user", ColumnRole::group),
                     column("when", ColumnRole::time),
                     column("w", ColumnRole::sample_weight)};
  options.columns[2].missing = {"NA", "-"};
  options.columns[6].list_separator = "|";
  options.columns[8].list_separator = ";";
  options.columns[8].weight_separator = ":";
  return options;
}

inline TextLayout mixed_layout() {
  auto layout = csv_layout(mixed_options(), {});
  RECMILL_CHECK(layout.ok(), layout.status().message());
  return *std::move(layout);
}

// Parses all rows of `text` that the parser takes: a bad row is left out.
struct Outcome {
  std::vector<std::string> rows;
  std::vector<std::string> errors;  // "row: message"
  bool operator==(const Outcome&) const = default;
};

inline Outcome parse_all(const TextLayout& layout, const std::string& text, ParserKind kind,
                         int threads = 2) {
  const std::string padding(kTextPadding, '\0');
  const std::string padded = padding + text + padding;
  std::vector<uint32_t> ends;
  find_row_ends(text, layout, ends);
  if ((ends.empty() ? 0 : ends.back()) < text.size()) ends.push_back(text.size());
  std::vector<TextRow> rows;
  for (size_t i = 0; i < ends.size(); ++i) {
    rows.push_back(trim_row(text.data(), i == 0 ? 0 : ends[i - 1], ends[i]));
  }
  Pool pool(threads);
  TextParser parser(layout, kind);
  Outcome outcome;
  while (true) {
    ColumnBatch batch;
    parser.clear(batch, static_cast<int64_t>(rows.size()));
    const BadRow bad = parser.append(padded.data() + kTextPadding, rows, pool, batch);
    if (bad.row < 0) {
      outcome.rows = samples_of(layout.schema, batch);
      return outcome;
    }
    outcome.errors.push_back(std::to_string(bad.row) + ": " + bad.status.message());
    rows.erase(rows.begin() + bad.row);
  }
}

inline std::string mixed_rows() {
  return "1,0.5,NA,ff,12,apple,1|2|3,x,a:1;b:0.5,u1,100,1\n"
         "0,,-,,,,,,,u2,-5,0.25\n"
         "1,-3,7,DEADBEEFdeadbeef,-1,\"a,b\",5,\"x\"\"y\",c:2,u3,7,2\n"
         "0,123456789,1e3,0,18446744073709551615,pear,|4||,,,u1,0,1\r\n"
         "1,-0,00000012,123456789a,1234567890123456,\"line\nend\",9,,d:1,u9,12,1.5\n";
}

inline std::string criteo_row(const char* integer = "5", const char* id = "68fd1e64") {
  std::string row = "1";
  for (int i = 0; i < 13; ++i) row += std::string("\t") + integer;
  for (int i = 0; i < 26; ++i) row += std::string("\t") + id;
  return row;
}

}  // namespace recmill::reader
