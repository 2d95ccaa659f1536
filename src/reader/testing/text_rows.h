// SPDX-License-Identifier: Apache-2.0
// Rows of text, and what a parser makes of them.
#pragma once

#include <string>
#include <vector>

#include "reader/lines/row_ends.h"
#include "reader/testing/samples_of.h"
#include "reader/text/text_parser.h"

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

// All rows of `text` that the parser takes, and why it refuses the others.
struct Outcome {
  std::vector<std::string> rows;
  std::vector<std::string> errors;  // "row: message"
  bool operator==(const Outcome&) const = default;
};

// Parses each row alone, to tell the bad ones; then all, of which the first bad one is named; then
// the good ones.
inline Outcome parse_all(const TextLayout& layout, const std::string& text, ParserKind kind,
                         int threads = 2) {
  const std::string padding(kTextPadding, '\0');
  const std::string padded = padding + text + padding;
  std::vector<uint32_t> ends;
  find_row_ends(text, layout, ends);
  const size_t whole = ends.empty() ? 0 : ends.back();
  const size_t rest = whole + blank_lines(std::string_view(text).substr(whole), layout);
  if (!is_blank_line(std::string_view(text).substr(rest), layout)) ends.push_back(text.size());
  ThreadPool pool(threads);
  TextParser parser({layout}, kind);
  ColumnBatch batch;
  const auto parse = [&](std::span<const TextRow> rows) {
    parser.clear(batch, static_cast<int64_t>(rows.size()));
    return parser.append(padded.data() + kTextPadding, rows, pool, batch);
  };
  const auto error = [](int64_t row, const BadRow& bad) {
    return std::to_string(row) + ": " + bad.status.message();
  };
  Outcome outcome;
  std::vector<TextRow> all, good;
  for (size_t i = 0; i < ends.size(); ++i) {
    const TextRow row = trim_row(text.data(), i == 0 ? 0 : ends[i - 1], ends[i], layout);
    all.push_back(row);
    const BadRow bad = parse({&row, 1});
    if (bad.row < 0) {
      good.push_back(row);
    } else {
      outcome.errors.push_back(error(static_cast<int64_t>(i), bad));
    }
  }
  const BadRow first = parse(all);
  RECMILL_CHECK((first.row < 0) == outcome.errors.empty());
  if (first.row >= 0) RECMILL_CHECK(error(first.row, first) == outcome.errors[0]);
  RECMILL_CHECK(parse(good).row < 0);
  outcome.rows = samples_of(layout.schema, batch);
  return outcome;
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
