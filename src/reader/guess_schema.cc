// SPDX-License-Identifier: Apache-2.0
#include "reader/guess_schema.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <unordered_set>

#include "base/hash.h"
#include "reader/byte_stream.h"
#include "reader/plain_text_parser.h"
#include "reader/row_ends.h"

namespace recmill::reader {
namespace {

constexpr size_t kHeadBytes = size_t{4} << 20;
constexpr int64_t kMaxRows = 1'000'000;

using Row = std::vector<std::string>;

// What the cells of a column have in common.
struct ColumnFacts {
  std::string name;
  int64_t cells = 0, distinct = 0, distinct_in_half = 0;  // cells that are not empty
  bool integers = true, numbers = true, hexadecimal = true, zero_or_one = true;
};

bool among(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return text;
}

std::string numbered(std::string name, size_t number) {
  return name += std::to_string(number);
}

Result<std::string> first_file(Files& files, const std::string& path) {
  if (!files.is_folder(path)) {
    if (files.exists(path)) return path;
    RECMILL_ASSIGN_OR_RETURN(const auto found, glob(path));
    return found[0];
  }
  RECMILL_ASSIGN_OR_RETURN(const auto names, files.list(path));
  for (const std::string& name : names) {
    const std::string file = (std::filesystem::path(path) / name).string();
    if (!files.is_folder(file) && !name.starts_with('.')) return file;
  }
  return Status::BadRequest(path + ": the folder has no files");
}

// The delimiter that every row of the head has equally often, and most often.
char guess_delimiter(const std::vector<std::string>& lines) {
  char best = ',';
  size_t most = 0;
  for (const char candidate : {'\t', ',', ';', '|'}) {
    TextLayout layout;
    layout.delimiter = candidate;
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
      f.integers = f.integers && parse_integer(cell).ok();
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
  const auto time = parse_integer(rows[rows.size() / 2][4]);
  return time.ok() && *time > 500'000'000 && *time < 5'000'000'000;
}

std::vector<ColumnSpec> guess_roles(const std::vector<ColumnFacts>& facts, int64_t rows) {
  std::vector<ColumnSpec> specs(facts.size());
  const auto find = [&](auto wanted) {
    return std::find_if(facts.begin(), facts.end(), wanted) - facts.begin();
  };
  auto label = static_cast<size_t>(find([](const ColumnFacts& f) {
    return f.numbers &&
           among(lower(f.name), {"label", "click", "clicked", "is_click", "target", "y"});
  }));
  if (label == facts.size()) label = find([](const ColumnFacts& f) { return f.zero_or_one; });
  const auto time = static_cast<size_t>(find([](const ColumnFacts& f) {
    return f.integers && among(lower(f.name), {"time", "timestamp", "hour", "date", "ts"});
  }));
  for (size_t c = 0; c < facts.size(); ++c) {
    const ColumnFacts& f = facts[c];
    ColumnSpec& spec = specs[c];
    spec.name = f.name;
    const bool row_number = lower(f.name) == "id" && f.distinct == rows;
    spec.role = c == label                   ? ColumnRole::label
                : c == time                  ? ColumnRole::time
                : row_number || f.cells == 0 ? ColumnRole::ignore
                : f.numbers && !f.integers   ? ColumnRole::dense
                                             : ColumnRole::id;
    spec.id_text = f.integers ? IdText::integer : f.hexadecimal ? IdText::hex : IdText::text;
  }
  return specs;
}

// Distinct ids grow as a power of the rows: the power between half of the sample and all of it,
// carried on to the whole file; twice that, so that few ids collide.
int64_t guess_rows(const ColumnFacts& f, int64_t sampled, int64_t estimated) {
  const double half = static_cast<double>(std::max<int64_t>(f.distinct_in_half, 1));
  const double power = std::log2(std::max(1.0, static_cast<double>(f.distinct) / half));
  const double growth = static_cast<double>(std::max(estimated, sampled)) /
                        static_cast<double>(std::max<int64_t>(sampled, 1));
  const double rows = 2.0 * static_cast<double>(f.distinct) * std::pow(growth, power);
  const auto whole = static_cast<int64_t>(std::min(rows, static_cast<double>(kMaxRows)));
  return std::min(kMaxRows, (whole / 100 + 1) * 100);
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '\t') {
      result += "\\t";
      continue;
    }
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result += '"';
}

std::string toml_of(const SchemaGuess& guess) {
  const DataOptions& data = guess.options;
  std::string text = "# Guessed from the first " + std::to_string(guess.sampled_rows) +
                     " rows of " + data.train[0] + "; some " +
                     std::to_string(guess.estimated_rows) + " rows in all. Look it over.\n[data]\n";
  text += "format = " + quoted(std::string(name_of(data.format))) + "\n";
  text += "path = " + quoted(data.path) + "\ntrain = [" + quoted(data.train[0]) + "]\n";
  if (data.format == DataFormat::csv) {
    text += "delimiter = " + quoted(data.delimiter) +
            "\nheader = " + (data.header ? "true" : "false") + "\n";
  }
  text += data.format == DataFormat::behavior_log ? "split.by = \"time\"\n"
                                                  : "split.by = \"fraction\"\n";
  text += "split.eval_fraction = 0.1\n";
  for (const ColumnSpec& column : data.columns) {
    text += "\n[[data.columns]]\nname = " + quoted(column.name) +
            "\nrole = " + quoted(std::string(name_of(column.role))) + "\n";
    if (column.role == ColumnRole::id) {
      text += "id_text = " + quoted(std::string(name_of(column.id_text))) + "\n";
    }
  }
  text += "\n[embedding]\ndim = 16\nrows = 100000\n";
  for (const TableGuess& table : guess.tables) {
    text += "\n[[tables]]  # " + std::to_string(table.distinct) + " distinct ids in the sample\n";
    text += "name = " + quoted(table.column) + "\nrows = " + std::to_string(table.rows) + "\n";
  }
  return text;
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
  if (size < kHeadBytes && (ends.empty() || ends.back() < size)) {
    ends.push_back(static_cast<uint32_t>(size));
  }
  if (ends.empty()) return Status::Failed(file + ": the first line does not end within 4 MiB");
  Head head;
  for (size_t i = 0; i < ends.size(); ++i) {
    const TextRow row = trim_row(text.data(), i == 0 ? 0 : ends[i - 1], ends[i]);
    head.lines.push_back(text.substr(row.begin, row.size));
  }
  head.bytes_a_row = static_cast<double>(ends.back()) / static_cast<double>(ends.size());
  return head;
}

}  // namespace

Result<SchemaGuess> guess_schema(Files& files, const std::string& path) {
  RECMILL_ASSIGN_OR_RETURN(const std::string file, first_file(files, path));
  for (const char* columnar : {".parquet", ".arrow", ".ipc", ".feather"}) {
    if (file.ends_with(columnar)) {
      return Status::BadRequest(file + ": columns are guessed for text only");
    }
  }
  RECMILL_ASSIGN_OR_RETURN(const Head head, read_head(files, file));
  TextLayout layout;
  layout.delimiter = guess_delimiter(head.lines);
  layout.quote = '"';
  std::vector<Row> rows;
  Row cells;
  for (const std::string& line : head.lines) {
    const bool whole = split_cells(layout, line, cells).ok();
    if (whole && (rows.empty() || cells.size() == rows[0].size())) rows.push_back(cells);
  }
  if (rows.empty()) return Status::Failed(file + ":1: is no row of text");
  SchemaGuess guess;
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
  const std::filesystem::path place(file);
  options.path = place.parent_path().string();
  options.train = {place.filename().string()};
  options.delimiter = std::string(1, layout.delimiter);
  const auto add_table = [&](std::string name, const ColumnFacts& f) {
    const int64_t needed = guess_rows(f, guess.sampled_rows, guess.estimated_rows);
    guess.tables.push_back({std::move(name), f.distinct, needed});
  };
  if (!options.header && looks_like_criteo(facts, layout.delimiter)) {
    options.format = DataFormat::criteo_tsv;
    for (size_t c = 14; c < facts.size(); ++c) add_table(numbered("C", c - 13), facts[c]);
  } else if (!options.header && looks_like_behavior_log(facts, rows)) {
    options.format = DataFormat::behavior_log;
    add_table("item", facts[1]);
    add_table("category", facts[2]);
  } else {
    options.format = DataFormat::csv;
    options.columns = guess_roles(facts, guess.sampled_rows);
    for (size_t c = 0; c < facts.size(); ++c) {
      if (options.columns[c].role == ColumnRole::id) add_table(facts[c].name, facts[c]);
    }
  }
  guess.toml = toml_of(guess);
  return guess;
}

}  // namespace recmill::reader
