// SPDX-License-Identifier: Apache-2.0
// A mixed-integer linear program, a plain value: minimise the sum of cost times column, with every
// row (a sum of value times column) and every column within its bounds, and some columns whole
// numbers. Bounds may be infinite. Answers are good to kTolerance: choose units in which it is
// nothing.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/status.h"

namespace recmill::solve {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// By how much a row or column may be outside its bounds, beside the rounding of sums; two
/// objectives that are nearer than this are equal.
inline constexpr double kTolerance = 1e-6;
/// That rounding, of the largest term.
inline constexpr double kSumRounding = 1e-12;

struct Column {
  double cost = 0.0;
  double lower = 0.0, upper = kInfinity;
  bool integer = false;
  bool operator==(const Column&) const = default;
};

/// One summand of a row.
struct Entry {
  int64_t column = 0;
  double value = 0.0;
  bool operator==(const Entry&) const = default;
};

struct Row {
  double lower = -kInfinity, upper = kInfinity;
  std::vector<Entry> entries;  // each column at most once
  bool operator==(const Row&) const = default;
};

class MixedIntegerProgram {
 public:
  /// The number of the new column.
  int64_t add_column(double cost, double lower, double upper, bool integer = false);
  /// A column that is 0 or 1.
  int64_t add_binary(double cost) { return add_column(cost, 0.0, 1.0, true); }
  void set_cost(int64_t column, double cost) { columns_[column].cost = cost; }
  /// The number of the new row, which may name columns that are added later.
  int64_t add_row(double lower, double upper, std::vector<Entry> entries);

  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<Row>& rows() const { return rows_; }
  bool has_integers() const;

  /// Fails, naming the first column or row that no solver can take: a NaN, bounds that exclude each
  /// other, a column that is not there or named twice, a number outside the solver's range.
  Status check() const;

  /// Costs times values, folded in the order of columns.
  double objective(std::span<const double> values) const;

  /// Fails, naming the first column or row that `values` put outside its bounds by more than
  /// kTolerance allows, or the first integer column that is not a whole number.
  Status check_values(std::span<const double> values) const;

  bool operator==(const MixedIntegerProgram&) const = default;

 private:
  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace recmill::solve
