// SPDX-License-Identifier: Apache-2.0
#include "reader/lines/text_split.h"

#include "base/hash.h"
#include "reader/row/plain_text_parser.h"

namespace recmill::reader {

Result<TextSplit> TextSplit::make(const RowSplit& split, const TextLayout& layout) {
  TextSplit text;
  text.rule_ = split;
  if (split.keeps_all()) return text;
  if (split.by() == SplitKind::time) {
    text.column_ = layout.column_of(ColumnRole::time);
    if (text.column_ < 0) return RowSplit::no_time_column();
  }
  if (split.by() == SplitKind::hash && !split.column().empty()) {
    text.column_ = layout.column_named(split.column());
    if (text.column_ < 0) {
      return Status::BadRequest("data.split.column: the data has no column '" + split.column() +
                                "'");
    }
  }
  return text;
}

Result<bool> TextSplit::keeps(const TextLayout& layout, std::string_view row, std::string_view file,
                              int64_t number) const {
  if (keeps_all()) return true;
  if (rule_.by() == SplitKind::fraction) return rule_.keeps_number(file, number);
  std::string_view cell = row;
  if (column_ >= 0) {
    thread_local std::vector<std::string> cells;
    RECMILL_RETURN_IF_ERROR(split_cells(layout, row, cells));
    if (cells.size() <= static_cast<size_t>(column_)) {
      return Status::Failed("has no column " + layout.columns[column_].spec.name);
    }
    cell = cells[column_];
  }
  if (rule_.by() == SplitKind::hash) return rule_.keeps_key(hash_bytes(cell));
  RECMILL_ASSIGN_OR_RETURN(const int64_t time, parse_time(cell));
  return rule_.keeps_time(time);
}

}  // namespace recmill::reader
