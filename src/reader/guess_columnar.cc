// SPDX-License-Identifier: Apache-2.0
#include "reader/guess_columnar.h"

#include <arrow/util/key_value_metadata.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_set>

#include "reader/columnar_reader.h"
#include "reader/columnar_roles.h"

namespace recmill::reader {
namespace {

constexpr int64_t kHeadRows = 65536;

/// What a field's metadata says of its role; empty: nothing.
std::string declared_role(const arrow::Field& field) {
  const auto& metadata = field.metadata();
  if (metadata == nullptr || !metadata->Contains(kRoleKey)) return "";
  return *metadata->Get(kRoleKey);
}

/// Counts the cells of one column, front to back.
class FactsOfColumn {
 public:
  FactsOfColumn(const BoundColumn& column, bool integers) : kind_(column.kind) {
    facts_.name = column.spec.name;
    facts_.integers = integers;
    facts_.numbers = integers || kind_ == CellKind::number;
    facts_.hexadecimal = false;
    facts_.time = kind_ == CellKind::time;
  }

  void take(const ColumnCells& cells) {
    for (const float number : cells.numbers) {
      if (std::isnan(number)) continue;
      ++facts_.cells;
      facts_.zero_or_one = facts_.zero_or_one && (number == 0 || number == 1);
    }
    for (size_t row = 0; row + 1 < cells.ids.offsets.size(); ++row) {
      const auto count = cells.ids.offsets[row + 1] - cells.ids.offsets[row];
      facts_.cells += count > 0;
      facts_.zero_or_one = facts_.zero_or_one && count <= 1;
    }
    for (const uint64_t id : cells.ids.ids) {
      seen_.insert(id);
      facts_.zero_or_one = facts_.zero_or_one && facts_.integers && id <= 1;
    }
    facts_.cells += static_cast<int64_t>(cells.times.size());
  }
  void half() { facts_.distinct_in_half = static_cast<int64_t>(seen_.size()); }

  ColumnFacts finish() {
    facts_.distinct = static_cast<int64_t>(seen_.size());
    return facts_;
  }

 private:
  const CellKind kind_;
  ColumnFacts facts_;
  std::unordered_set<uint64_t> seen_;
};

/// Reads the first `rows` rows of a column, in two halves.
Result<ColumnFacts> facts_of(RowGroupFile& file, const BoundColumn& column, int64_t rows) {
  FactsOfColumn facts(column, is_whole_type(*file.fields().field(column.field)->type()));
  ColumnCells cells;
  int64_t done = 0;
  for (size_t group = 0; done < rows; ++group) {
    const int64_t in_group = file.row_groups()[group];
    RECMILL_ASSIGN_OR_RETURN(const auto cursor, file.open(static_cast<int64_t>(group), column,
                                                          column.kind, in_group > rows - done));
    for (int64_t row = 0; row < in_group && done < rows;) {
      const int64_t until = done < rows / 2 ? rows / 2 : rows;
      const int64_t count = std::min(in_group - row, until - done);
      RECMILL_RETURN_IF_ERROR(cursor->read(count, cells));
      facts.take(cells);
      row += count;
      done += count;
      if (done == rows / 2) facts.half();
      cells.clear();
    }
  }
  return facts.finish();
}

}  // namespace

Result<SchemaGuess> guess_columnar(Files& files, DataFormat format, const std::string& path) {
  RECMILL_ASSIGN_OR_RETURN(const auto file, open_row_groups(format, path, files));
  const auto& groups = file->row_groups();
  SchemaGuess guess = guess_of(path, format);
  guess.estimated_rows = std::accumulate(groups.begin(), groups.end(), int64_t{0});
  guess.sampled_rows = std::min(guess.estimated_rows, kHeadRows);
  if (guess.sampled_rows == 0) return Status::Failed(path + ": has no rows");
  const auto& fields = file->fields().fields();
  const bool declared =
      std::ranges::any_of(fields, [](const auto& field) { return !declared_role(*field).empty(); });
  std::vector<ColumnFacts> facts;
  for (int i = 0; i < file->fields().num_fields(); ++i) {
    const std::string& name = fields[static_cast<size_t>(i)]->name();
    const std::string role = declared_role(*fields[static_cast<size_t>(i)]);
    guess.has_dense = guess.has_dense || role == "dense";
    if (declared && role != "id") continue;
    const std::optional<BoundColumn> column = bind_by_type(file->fields(), i);
    if (column.has_value()) {
      RECMILL_ASSIGN_OR_RETURN(facts.emplace_back(), facts_of(*file, *column, guess.sampled_rows));
    } else {
      facts.emplace_back().name = name;
      facts.back().ignored = true;
    }
    if (declared) add_table(name, facts.back(), guess);
  }
  if (!declared) {
    guess.options.columns = guess_roles(facts, guess.sampled_rows);
    for (size_t c = 0; c < facts.size(); ++c) {
      guess.has_dense = guess.has_dense || guess.options.columns[c].role == ColumnRole::dense;
      if (guess.options.columns[c].role == ColumnRole::id) {
        add_table(facts[c].name, facts[c], guess);
      }
    }
  }
  RECMILL_RETURN_IF_ERROR(write_toml(guess));
  return guess;
}

}  // namespace recmill::reader
