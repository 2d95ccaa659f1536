// SPDX-License-Identifier: Apache-2.0
// Which rows of a file are in a subset: a pure function of the row.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "reader/text_layout.h"

namespace recmill::reader {

/// The error for a side of a split that no row is on. `boundary`: of a split by time.
Status empty_side(const SplitOptions& options, Subset subset, int64_t boundary);

class RowSplit {
 public:
  /// A split by time needs its boundary in `options` (time_boundary.h finds one for a fraction).
  static Result<RowSplit> make(const SplitOptions& options, Subset subset,
                               const TextLayout& layout);

  bool keeps_all() const { return subset_ == Subset::all || options_.by == SplitKind::file; }
  /// `file` is the name without its folder; `number` counts the rows of the file from 0. Fails
  /// where the row lacks the cell that decides.
  Result<bool> keeps(const TextLayout& layout, std::string_view row, std::string_view file,
                     int64_t number) const;
  /// Text that differs wherever other rows would be kept.
  std::string fingerprint() const;

 private:
  Result<bool> evaluates(const TextLayout& layout, std::string_view row, std::string_view file,
                         int64_t number) const;
  SplitOptions options_;
  Subset subset_ = Subset::all;
  int column_ = -1;
};

}  // namespace recmill::reader
