// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "reader/row/text_layout.h"
#include "reader/row_split.h"

namespace recmill::reader {

/// A split of rows of text: takes what the split looks at from the row.
class TextSplit {
 public:
  TextSplit() = default;  // keeps all rows
  /// Fails where the layout lacks the column that decides.
  static Result<TextSplit> make(const RowSplit& split, const TextLayout& layout);

  const RowSplit& rule() const { return rule_; }
  bool keeps_all() const { return rule_.keeps_all(); }
  /// `file` and `number` as of RowSplit. Fails where the row lacks the cell that decides.
  Result<bool> keeps(const TextLayout& layout, std::string_view row, std::string_view file,
                     int64_t number) const;

 private:
  RowSplit rule_;
  int column_ = -1;
};

}  // namespace recmill::reader
