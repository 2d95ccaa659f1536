// SPDX-License-Identifier: Apache-2.0
#include "reader/schema_guess.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/json_lines.h"

namespace recmill::reader {
namespace {

constexpr int64_t kMaxRows = 1'000'000;

bool among(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return text;
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

// Names are the file's, which may hold any bytes; TOML is UTF-8.
Status check_names(const SchemaGuess& guess) {
  const DataOptions& data = guess.options;
  const std::string file = (std::filesystem::path(data.path) / data.train[0]).string();
  RECMILL_RETURN_IF_ERROR(quote(file).status().at("the name of the data"));
  for (size_t c = 0; c < data.columns.size(); ++c) {
    const Status status = quote(data.columns[c].name).status();
    if (!status.ok()) return status.at(file + ": the name of column " + std::to_string(c + 1));
  }
  return {};
}

}  // namespace

SchemaGuess guess_of(const std::string& file, DataFormat format) {
  SchemaGuess guess;
  const std::filesystem::path place(file);
  guess.options.format = format;
  guess.options.path = place.parent_path().string();
  guess.options.train = {place.filename().string()};
  return guess;
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
    return f.time ||
           (f.integers && among(lower(f.name), {"time", "timestamp", "hour", "date", "ts"}));
  }));
  for (size_t c = 0; c < facts.size(); ++c) {
    const ColumnFacts& f = facts[c];
    ColumnSpec& spec = specs[c];
    spec.name = f.name;
    const bool row_number = lower(f.name) == "id" && f.distinct == rows;
    spec.role = c == label                                          ? ColumnRole::label
                : c == time                                         ? ColumnRole::time
                : row_number || f.cells == 0 || f.time || f.ignored ? ColumnRole::ignore
                : f.numbers && !f.integers                          ? ColumnRole::dense
                                                                    : ColumnRole::id;
    spec.id_text = f.integers ? IdText::integer : f.hexadecimal ? IdText::hex : IdText::text;
  }
  return specs;
}

void add_table(std::string name, const ColumnFacts& facts, SchemaGuess& guess) {
  const int64_t rows = guess_rows(facts, guess.sampled_rows, guess.estimated_rows);
  guess.tables.push_back({std::move(name), facts.distinct, rows});
}

Status write_toml(SchemaGuess& guess) {
  const DataOptions& data = guess.options;
  RECMILL_RETURN_IF_ERROR(check_names(guess));
  const auto quoted = [](const std::string& name) { return *quote(name); };
  std::string text = "# Guessed from the first " + std::to_string(guess.sampled_rows) +
                     " rows of " + quoted(data.train[0]) + "; some " +
                     std::to_string(guess.estimated_rows) + " rows in all. Look it over.\n[data]\n";
  text += "format = \"" + std::string(name_of(data.format)) + "\"\n";
  text += "path = " + quoted(data.path) + "\ntrain = [" + quoted(data.train[0]) + "]\n";
  if (data.format == DataFormat::csv) {
    text += "delimiter = " + quoted(data.delimiter) +
            "\nheader = " + (data.header ? "true" : "false") + "\n";
  }
  text += data.format == DataFormat::behavior_log ? "split.by = \"time\"\n"
                                                  : "split.by = \"fraction\"\n";
  text += "split.eval_fraction = 0.1\n";
  const auto is_label = [](const ColumnSpec& column) { return column.role == ColumnRole::label; };
  if (!data.columns.empty() && std::ranges::none_of(data.columns, is_label)) {
    text += "# No column looks like the label: one must get the role \"label\".\n";
  }
  for (const ColumnSpec& column : data.columns) {
    text += "\n[[data.columns]]\nname = " + quoted(column.name) + "\nrole = \"" +
            std::string(name_of(column.role)) + "\"\n";
    if (column.role == ColumnRole::id) {
      text += "id_text = \"" + std::string(name_of(column.id_text)) + "\"\n";
    }
  }
  text += "\n[embedding]\ndim = 16\nrows = 100000\n";
  for (const TableGuess& table : guess.tables) {
    text += "\n[[tables]]  # " + std::to_string(table.distinct) + " distinct ids in the sample\n";
    text += "name = " + quoted(table.column) + "\nrows = " + std::to_string(table.rows) + "\n";
  }
  if (data.format == DataFormat::behavior_log) {
    text += "\n# A history's rows are those of its target's table.\n";
    for (const std::string target : {"item", "category"}) {
      text += "[[features]]\nname = \"" + target + "\"\n\n[[features]]\nname = \"" + target +
              "_history\"\ntable = \"" + target + "\"\n\n";
    }
  }
  text += "\n[model]\nkind = \"dlrm\"\n";
  if (guess.has_dense) text += "bottom = [64, 16]\n";
  text += "top = [64, 1]\n";
  guess.toml = std::move(text);
  return {};
}

}  // namespace recmill::reader
