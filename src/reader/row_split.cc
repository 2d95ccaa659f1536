// SPDX-License-Identifier: Apache-2.0
#include "reader/row_split.h"

#include "base/hash.h"
#include "base/random.h"
#include "reader/plain_text_parser.h"

namespace recmill::reader {

Status empty_side(const SplitOptions& options, Subset subset, int64_t boundary) {
  const std::string side = subset == Subset::train ? "training" : "evaluation";
  if (options.by != SplitKind::time) {
    return Status::BadRequest("data.split.eval_fraction: " + std::to_string(options.eval_fraction) +
                              " leaves no rows for " + side);
  }
  const bool chosen = options.boundary != 0;
  return Status::BadRequest(
      std::string("data.split.") + (chosen ? "boundary" : "eval_fraction") + ": no row for " +
      side + ": none has a time " + (subset == Subset::train ? "before " : "from ") +
      std::to_string(boundary) + (chosen ? "" : " (where evaluation begins)"));
}

Result<RowSplit> RowSplit::make(const SplitOptions& options, Subset subset,
                                const TextLayout& layout) {
  RowSplit split;
  split.options_ = options;
  split.subset_ = subset;
  if (split.keeps_all()) return split;
  if (!(options.eval_fraction >= 0 && options.eval_fraction <= 1)) {
    return Status::BadRequest("data.split.eval_fraction: must lie in [0, 1]: " +
                              std::to_string(options.eval_fraction));
  }
  if (options.by == SplitKind::time) {
    split.column_ = layout.column_of(ColumnRole::time);
    if (split.column_ < 0) return Status::BadRequest("data.split.by = time: no time column");
  }
  if (options.by == SplitKind::hash && !options.column.empty()) {
    split.column_ = layout.column_named(options.column);
    if (split.column_ < 0) {
      return Status::BadRequest("data.split.column: the data has no column '" + options.column +
                                "'");
    }
  }
  return split;
}

Result<bool> RowSplit::keeps(const TextLayout& layout, std::string_view row, std::string_view file,
                             int64_t number) const {
  if (keeps_all()) return true;
  RECMILL_ASSIGN_OR_RETURN(const bool eval, evaluates(layout, row, file, number));
  return eval == (subset_ == Subset::eval);
}

Result<bool> RowSplit::evaluates(const TextLayout& layout, std::string_view row,
                                 std::string_view file, int64_t number) const {
  const auto seed = static_cast<uint64_t>(options_.seed);
  if (options_.by == SplitKind::fraction) {
    const Random random(seed, Purpose::split, hash_bytes(file));
    return random.uniform64(static_cast<uint64_t>(number)) < options_.eval_fraction;
  }
  std::string cell(row);
  if (column_ >= 0) {
    thread_local std::vector<std::string> cells;
    RECMILL_RETURN_IF_ERROR(split_cells(layout, row, cells));
    if (cells.size() <= static_cast<size_t>(column_)) {
      return Status::Failed("has no column " + layout.columns[column_].spec.name);
    }
    cell = cells[column_];
  }
  if (options_.by == SplitKind::hash) {
    const Random random(seed, Purpose::split);
    return random.uniform64(hash_bytes(cell)) < options_.eval_fraction;
  }
  RECMILL_ASSIGN_OR_RETURN(const int64_t time, parse_integer(cell));
  return time >= options_.boundary;
}

std::string RowSplit::fingerprint() const {
  if (keeps_all()) return "all";
  std::string text;
  for (const std::string& part :
       {std::string(name_of(subset_)), std::string(name_of(options_.by)),
        std::to_string(options_.eval_fraction), options_.column, std::to_string(options_.boundary),
        std::to_string(options_.seed)}) {
    text += part + ',';
  }
  return text;
}

}  // namespace recmill::reader
