// SPDX-License-Identifier: Apache-2.0
// Which rows of the data are in a subset: decided here for every format, by what the split looks
// at.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "reader/data_options.h"

namespace recmill::reader {

/// Of `rows` in ascending order of time, those before evaluation: all but the last `eval_fraction`
/// (rounded down, one at least).
int64_t rows_before_evaluation(int64_t rows, double eval_fraction);

class RowSplit {
 public:
  RowSplit() = default;  // keeps all rows
  static Result<RowSplit> make(const SplitOptions& options, Subset subset);

  bool keeps_all() const { return subset_ == Subset::all || options_.by == SplitKind::file; }
  /// By hash of a column or by time: something in the row decides. No column: the whole row.
  SplitKind by() const { return options_.by; }
  const std::string& column() const { return options_.column; }
  double eval_fraction() const { return options_.eval_fraction; }
  /// By time, where the boundary follows from eval_fraction and is not known yet.
  bool lacks_boundary() const;
  RowSplit with_boundary(int64_t boundary) const;

  /// By fraction. `file` is the name without its folder; `number` counts the rows of the file from
  /// 0.
  bool keeps_number(std::string_view file, int64_t number) const;
  /// By hash of what decides.
  bool keeps_key(uint64_t key) const;
  bool keeps_time(int64_t time) const;

  /// The error for a subset without rows.
  Status empty_side() const;
  /// The error for a split by time of data without a time column.
  static Status no_time_column();
  /// Text that differs wherever other rows would be kept.
  std::string fingerprint() const;

 private:
  bool keeps(bool evaluates) const { return evaluates == (subset_ == Subset::eval); }

  SplitOptions options_;
  Subset subset_ = Subset::all;
  bool boundary_chosen_ = false;  // by the user
};

}  // namespace recmill::reader
