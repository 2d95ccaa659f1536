// SPDX-License-Identifier: Apache-2.0
#include "reader/guess/guess_columnar.h"

#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "base/hash.h"
#include "reader/columnar/columnar_reader.h"
#include "reader/columnar/columnar_roles.h"

namespace recmill::reader {
namespace {

constexpr int64_t kSampleRows = 131072;
constexpr int64_t kLeastRows = 4096;  // of a file
constexpr size_t kMostFiles = 64;     // that rows are taken from
constexpr int64_t kPlaces = 4;        // row groups of a file

/// What a field's metadata says of its role; empty: nothing.
std::string declared_role(const arrow::Field& field) {
  const auto& metadata = field.metadata();
  if (metadata == nullptr || !metadata->Contains(kRoleKey)) return "";
  return *metadata->Get(kRoleKey);
}

/// Text is read as hashes. Words that labels are written in are known by theirs.
std::string text_of(uint64_t hash) {
  static const auto* const kWords = [] {
    auto* words = new std::unordered_map<uint64_t, std::string>();
    for (const char* word : {"yes", "no", "Yes",  "No",    "YES",  "NO",    "y",        "n",
                             "Y",   "N",  "true", "false", "True", "False", "TRUE",     "FALSE",
                             "t",   "f",  "T",    "F",     "pos",  "neg",   "positive", "negative",
                             "1",   "0",  ">50K", "<=50K", "good", "bad"}) {
      words->emplace(hash_bytes(word), word);
    }
    return words;
  }();
  const auto found = kWords->find(hash);
  return found != kWords->end() ? found->second : fmt::format("{:016x}", hash);
}

void add_cells(const ColumnCells& cells, const BoundColumn& bound, SampledColumn& column) {
  for (const float number : cells.numbers) {
    column.add(std::isfinite(number) ? fmt::format("{}", number) : "");
  }
  for (size_t row = 0; row + 1 < cells.ids.offsets.size(); ++row) {
    std::string cell;
    for (auto i = cells.ids.offsets[row]; i < cells.ids.offsets[row + 1]; ++i) {
      const uint64_t id = cells.ids.ids[static_cast<size_t>(i)];
      if (i > cells.ids.offsets[row]) cell += SampledColumn::kItemEnd;
      cell +=
          column.type == CellType::hashed ? text_of(id) : std::to_string(static_cast<int64_t>(id));
    }
    column.add(cell);
  }
  if (bound.kind == CellKind::time) {
    for (const int64_t time : cells.times) column.add(std::to_string(time));
  }
}

/// Numbers that are whole are read as ids, which keeps all of their digits: pandas writes ids so
/// where some are missing. False where some are none.
Result<bool> read_as_ids(RowGroupFile& file, const BoundColumn& bound, size_t group, int64_t rows,
                         SampledColumn& column) {
  BoundColumn ids = bound;
  ids.kind = CellKind::id;
  RECMILL_ASSIGN_OR_RETURN(const auto cursor,
                           file.open(static_cast<int64_t>(group), ids, ids.kind, true));
  ColumnCells cells;
  RECMILL_RETURN_IF_ERROR(cursor->read(rows, cells));
  if (!cells.bad.empty()) return false;
  add_cells(cells, ids, column);
  return true;
}

/// Reads `rows` rows of a column from the row groups at `groups`, as many of each.
Status read_column(RowGroupFile& file, const BoundColumn& bound, const std::vector<size_t>& groups,
                   int64_t rows, SampledColumn& column) {
  ColumnCells cells;
  const int64_t share = std::max<int64_t>(rows / static_cast<int64_t>(groups.size()), 1);
  for (const size_t group : groups) {
    const int64_t count = std::min(file.row_groups()[group], share);
    if (bound.kind == CellKind::number && !bound.list) {
      RECMILL_ASSIGN_OR_RETURN(const bool whole, read_as_ids(file, bound, group, count, column));
      if (whole) continue;
    }
    RECMILL_ASSIGN_OR_RETURN(const auto cursor,
                             file.open(static_cast<int64_t>(group), bound, bound.kind, true));
    cells.clear();
    RECMILL_RETURN_IF_ERROR(cursor->read(count, cells));
    if (bound.list && bound.weights.field < 0 && !cells.bad.empty()) {  // vectors of fractions
      column.type = CellType::unread;
      return {};
    }
    add_cells(cells, bound, column);
  }
  return {};
}

/// Row groups, evenly spaced, that rows are taken from.
std::vector<size_t> places_in(const RowGroupFile& file, int64_t rows) {
  const auto& groups = file.row_groups();
  std::vector<size_t> places;
  const int64_t all = std::accumulate(groups.begin(), groups.end(), int64_t{0});
  const size_t wanted = all <= rows ? groups.size() : std::min<size_t>(kPlaces, groups.size());
  for (size_t i = 0; i < wanted; ++i) places.push_back(i * groups.size() / wanted);
  return places;
}

std::vector<SampledColumn> columns_of(const arrow::Schema& fields, bool& declared) {
  std::vector<SampledColumn> columns;
  for (const auto& [name, place, field, bound] : fields_by_type(fields)) {
    SampledColumn column;
    column.name = name;
    const bool whole = is_whole_type(*field->type());
    column.type = !bound.has_value()                ? CellType::unread
                  : bound->kind == CellKind::time   ? CellType::time
                  : bound->kind == CellKind::number ? CellType::real
                  : whole                           ? CellType::whole
                                                    : CellType::hashed;
    column.list = bound.has_value() && bound->list;
    column.weighted = column.list && bound->weights.field >= 0;
    const std::string role = declared_role(*field);
    declared = declared || !role.empty();
    for (const auto& [value, role_name] : EnumNames<ColumnRole>::names) {
      if (role_name == role) column.declared = value;
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

Status same_fields(const arrow::Schema& fields, const arrow::Schema& first, const std::string& path,
                   const std::string& first_path) {
  if (std::ranges::equal(fields_by_type(fields), fields_by_type(first), {}, &NamedField::name,
                         &NamedField::name))
    return {};
  return Status::BadRequest(path + ": its columns are not those of " + first_path +
                            "; name the files that are one data set by a pattern");
}

Status take_rows(RowGroupFile& file, int64_t share, Sample& sample) {
  const auto& groups = file.row_groups();
  const int64_t all = std::accumulate(groups.begin(), groups.end(), int64_t{0});
  const std::vector<size_t> places = places_in(file, share);
  const std::vector<NamedField> fields = fields_by_type(file.fields());
  for (size_t c = 0; c < sample.columns.size() && !places.empty(); ++c) {
    const auto& bound = fields[c].bound;
    SampledColumn& column = sample.columns[c];
    if (!bound.has_value() || column.type == CellType::unread) continue;
    if (all <= share) {  // whole
      for (const size_t group : places) {
        RECMILL_RETURN_IF_ERROR(read_column(file, *bound, {group}, groups[group], column));
      }
    } else {
      RECMILL_RETURN_IF_ERROR(read_column(file, *bound, places, share, column));
    }
  }
  sample.whole = sample.whole && all <= share;
  return {};
}

/// Columns that are not read have as many cells as the others, all empty.
void fill_unread(Sample& sample) {
  size_t rows = 0;
  for (const SampledColumn& column : sample.columns) rows = std::max(rows, column.rows());
  for (SampledColumn& column : sample.columns) {
    while (column.rows() < rows) column.add("");
  }
}

}  // namespace

Result<Sample> sample_columnar(Files& files, DataFormat format,
                               const std::vector<std::string>& paths) {
  Sample sample;
  sample.data.format = format;
  sample.whole = true;
  std::shared_ptr<arrow::Schema> first;
  const size_t every = (paths.size() + kMostFiles - 1) / kMostFiles;
  const int64_t share =
      std::max(kSampleRows / static_cast<int64_t>(std::min(paths.size(), kMostFiles)), kLeastRows);
  for (size_t f = 0; f < paths.size(); ++f) {
    RECMILL_ASSIGN_OR_RETURN(const auto file, open_row_groups(format, paths[f], files));
    if (first == nullptr) {
      first = std::make_shared<arrow::Schema>(file->fields());
      sample.columns = columns_of(*first, sample.declared);
    }
    RECMILL_RETURN_IF_ERROR(same_fields(file->fields(), *first, paths[f], paths[0]));
    const auto& groups = file->row_groups();
    sample.estimated_rows += std::accumulate(groups.begin(), groups.end(), int64_t{0});
    if (f % every == 0) RECMILL_RETURN_IF_ERROR(take_rows(*file, share, sample));
  }
  sample.whole = sample.whole && every == 1;
  if (sample.estimated_rows == 0) return Status::Failed(paths[0] + ": has no rows");
  fill_unread(sample);
  return sample;
}

}  // namespace recmill::reader
