// SPDX-License-Identifier: Apache-2.0
#include "reader/guess_text.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "base/hash.h"
#include "reader/byte_stream.h"
#include "reader/plain_text_parser.h"
#include "reader/row_ends.h"

namespace recmill::reader {
namespace {

constexpr size_t kHeadBytes = size_t{4} << 20;

using Row = std::vector<std::string>;

std::string numbered(std::string name, size_t number) {
  return name += std::to_string(number);
}

// The delimiter that every row of the head has equally often, and most often.
char guess_delimiter(const std::vector<std::string>& lines) {
  char best = ',';
  size_t most = 0;
  for (const char candidate : {'\t', ',', ';', '|'}) {
    TextLayout layout;
    layout.delimiter = std::string(1, candidate);
    layout.quote = '"';
    size_t count = 0;
    bool even = true;
    Row cells;
    for (size_t i = 0; i < std::min<size_t>(lines.size(), 100); ++i) {
      even = even && split_cells(layout, lines[i], cells).ok();
      if (i == 0) count = cells.size();
      even = even && cells.size() == count;
    }
    if (even && count > std::max<size_t>(most, 1)) {
      best = candidate;
      most = count;
    }
  }
  return best;
}

bool is_integer(std::string_view cell) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return error == std::errc() && end == cell.data() + cell.size();
}

bool is_header(const Row& cells) {
  return std::none_of(cells.begin(), cells.end(), [](const std::string& cell) {
    return cell.empty() || parse_number(cell).ok();
  });
}

std::vector<ColumnFacts> facts_of(const Row& names, const std::vector<Row>& rows) {
  std::vector<ColumnFacts> facts(names.size());
  for (size_t c = 0; c < names.size(); ++c) {
    ColumnFacts& f = facts[c];
    f.name = names[c];
    std::unordered_set<uint64_t> seen;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i == rows.size() / 2) f.distinct_in_half = static_cast<int64_t>(seen.size());
      const std::string& cell = rows[i][c];
      if (cell.empty()) continue;
      ++f.cells;
      seen.insert(hash_bytes(cell));
      f.integers = f.integers && is_integer(cell);
      f.numbers = f.numbers && parse_number(cell).ok();
      f.hexadecimal = f.hexadecimal && cell.size() >= 6 && parse_id(IdText::hex, cell).ok();
      f.zero_or_one = f.zero_or_one && (cell == "0" || cell == "1");
    }
    f.distinct = static_cast<int64_t>(seen.size());
  }
  return facts;
}

bool looks_like_criteo(const std::vector<ColumnFacts>& facts, char delimiter) {
  if (delimiter != '\t' || facts.size() != 40 || !facts[0].zero_or_one) return false;
  const auto integers = [](const ColumnFacts& f) { return f.integers; };
  const auto ids = [](const ColumnFacts& f) { return f.hexadecimal; };
  return std::all_of(facts.begin() + 1, facts.begin() + 14, integers) &&
         std::all_of(facts.begin() + 14, facts.end(), ids);
}

bool looks_like_behavior_log(const std::vector<ColumnFacts>& facts, const std::vector<Row>& rows) {
  if (facts.size() != 5 || facts[3].integers || facts[3].distinct > 20) return false;
  for (const size_t c : {0, 1, 2, 4}) {
    if (!facts[c].integers) return false;
  }
  const auto time = parse_time(rows[rows.size() / 2][4]);
  return time.ok() && *time > 500'000'000 && *time < 5'000'000'000;
}

struct Head {
  std::vector<std::string> lines;
  double bytes_a_row = 1;
};

Result<Head> read_head(Files& files, const std::string& file) {
  RECMILL_ASSIGN_OR_RETURN(auto stream, open_byte_stream(files, file));
  std::string text(kHeadBytes, '\0');
  RECMILL_ASSIGN_OR_RETURN(const size_t size, stream->read(text));
  if (size == 0) return Status::Failed(file + ": is empty");
  text.resize(size);
  TextLayout layout;
  std::vector<uint32_t> ends;
  find_row_ends(text, layout, ends);
  const size_t whole = ends.empty() ? 0 : ends.back();
  if (size < kHeadBytes && !is_blank_line(std::string_view(text).substr(whole), layout)) {
    ends.push_back(static_cast<uint32_t>(size));
  }
  if (ends.empty()) return Status::Failed(file + ": the first line does not end within 4 MiB");
  Head head;
  for (size_t i = 0; i < ends.size(); ++i) {
    const TextRow row = trim_row(text.data(), i == 0 ? 0 : ends[i - 1], ends[i], layout);
    head.lines.push_back(text.substr(row.begin, row.size));
  }
  head.lines[0] = std::string(after_byte_order_mark(head.lines[0]));
  head.bytes_a_row = static_cast<double>(ends.back()) / static_cast<double>(ends.size());
  return head;
}

}  // namespace

Result<SchemaGuess> guess_text(Files& files, const std::string& file) {
  RECMILL_ASSIGN_OR_RETURN(const Head head, read_head(files, file));
  TextLayout layout;
  layout.delimiter = std::string(1, guess_delimiter(head.lines));
  layout.quote = '"';
  std::vector<Row> rows;
  Row cells;
  for (const std::string& line : head.lines) {
    const bool whole = split_cells(layout, line, cells).ok();
    if (whole && (rows.empty() || cells.size() == rows[0].size())) rows.push_back(cells);
  }
  if (rows.empty()) return Status::Failed(file + ":1: is no row of text");
  SchemaGuess guess = guess_of(file, DataFormat::csv);
  DataOptions& options = guess.options;
  options.header = rows.size() > 1 && is_header(rows[0]);
  Row names = rows[0];
  if (options.header) {
    rows.erase(rows.begin());
  } else {
    for (size_t c = 0; c < names.size(); ++c) names[c] = numbered("c", c);
  }
  const auto facts = facts_of(names, rows);
  guess.sampled_rows = static_cast<int64_t>(rows.size());
  RECMILL_ASSIGN_OR_RETURN(const auto opened, files.open(file));
  guess.estimated_rows =
      std::max(guess.sampled_rows,
               static_cast<int64_t>(static_cast<double>(opened->size()) / head.bytes_a_row));
  options.delimiter = layout.delimiter;
  if (!options.header && looks_like_criteo(facts, layout.delimiter[0])) {
    options.format = DataFormat::criteo_tsv;
    guess.has_dense = true;
    for (size_t c = 14; c < facts.size(); ++c) add_table(numbered("C", c - 13), facts[c], guess);
  } else if (!options.header && looks_like_behavior_log(facts, rows)) {
    options.format = DataFormat::behavior_log;
    add_table("item", facts[1], guess);
    add_table("category", facts[2], guess);
  } else {
    options.columns = guess_roles(facts, guess.sampled_rows);
    for (size_t c = 0; c < facts.size(); ++c) {
      guess.has_dense = guess.has_dense || options.columns[c].role == ColumnRole::dense;
      if (options.columns[c].role == ColumnRole::id) add_table(facts[c].name, facts[c], guess);
    }
  }
  RECMILL_RETURN_IF_ERROR(write_toml(guess));
  return guess;
}

}  // namespace recmill::reader
