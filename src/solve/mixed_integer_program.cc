// SPDX-License-Identifier: Apache-2.0
#include "solve/mixed_integer_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace recmill::solve {
namespace {

// HiGHS takes larger bounds and costs for infinite, and smaller coefficients for zero.
constexpr double kLargestBound = 1e20;
constexpr double kLargestCoefficient = 1e15;
constexpr double kSmallestCoefficient = 1e-9;

Status check_bounds(double lower, double upper) {
  if (std::isnan(lower) || std::isnan(upper) || lower > upper || lower == kInfinity ||
      upper == -kInfinity)
    return Status::Failed(fmt::format("bounds {} to {} hold no number", lower, upper));
  for (const double bound : {lower, upper}) {
    if (std::isfinite(bound) && std::fabs(bound) >= kLargestBound)
      return Status::Failed(
          fmt::format("bound {} is neither below {} nor infinite", bound, kLargestBound));
  }
  return {};
}

Status check_column(const Column& column) {
  if (!(std::fabs(column.cost) < kLargestBound))
    return Status::Failed(fmt::format("cost {} is no number below {}", column.cost, kLargestBound));
  return check_bounds(column.lower, column.upper);
}

Status check_entry(const Entry& entry, int64_t columns) {
  if (entry.column < 0 || entry.column >= columns)
    return Status::Failed(
        fmt::format("names column {}, and there are {} columns", entry.column, columns));
  const double size = std::fabs(entry.value);
  if (entry.value != 0.0 && !(size > kSmallestCoefficient && size < kLargestCoefficient))
    return Status::Failed(
        fmt::format("value {} of column {} is neither 0 nor between {:g} and {:g}", entry.value,
                    entry.column, kSmallestCoefficient, kLargestCoefficient));
  return {};
}

/// `last_row_of` holds, for each column, the last row that named it.
Status check_row(const Row& row, int64_t number, std::vector<int64_t>& last_row_of) {
  RECMILL_RETURN_IF_ERROR(check_bounds(row.lower, row.upper));
  for (const Entry& entry : row.entries) {
    RECMILL_RETURN_IF_ERROR(check_entry(entry, last_row_of.size()));
    if (std::exchange(last_row_of[entry.column], number) == number)
      return Status::Failed(fmt::format("names column {} twice", entry.column));
  }
  return {};
}

std::string name_of(const char* what, int64_t number) {
  return fmt::format("{} {}", what, number);
}

/// Whether `value` is within the bounds, where it is a sum of terms up to `largest`.
bool within(double value, double lower, double upper, double largest) {
  const double slack = kTolerance + kSumRounding * largest;
  return value >= lower - slack && value <= upper + slack;
}

Status check_value(const Column& column, double value) {
  if (!within(value, column.lower, column.upper, 0.0))
    return Status::Failed(
        fmt::format("{} is not within {} to {}", value, column.lower, column.upper));
  if (column.integer && !(std::fabs(value - std::round(value)) <= kTolerance))
    return Status::Failed(fmt::format("{} is not a whole number", value));
  return {};
}

Status check_sum(const Row& row, std::span<const double> values) {
  double sum = 0.0, largest = 0.0;
  for (const Entry& entry : row.entries) {
    const double term = entry.value * values[entry.column];
    sum += term;
    largest = std::max(largest, std::fabs(term));
  }
  if (!within(sum, row.lower, row.upper, largest))
    return Status::Failed(fmt::format("{} is not within {} to {}", sum, row.lower, row.upper));
  return {};
}

}  // namespace

int64_t MixedIntegerProgram::add_column(double cost, double lower, double upper, bool integer) {
  columns_.push_back({cost, lower, upper, integer});
  return static_cast<int64_t>(columns_.size()) - 1;
}

int64_t MixedIntegerProgram::add_row(double lower, double upper, std::vector<Entry> entries) {
  rows_.push_back({lower, upper, std::move(entries)});
  return static_cast<int64_t>(rows_.size()) - 1;
}

bool MixedIntegerProgram::has_integers() const {
  return std::ranges::any_of(columns_, &Column::integer);
}

Status MixedIntegerProgram::check() const {
  for (size_t c = 0; c < columns_.size(); ++c)
    RECMILL_RETURN_IF_ERROR(check_column(columns_[c]).at(name_of("column", c)));
  std::vector<int64_t> last_row_of(columns_.size(), -1);
  for (size_t r = 0; r < rows_.size(); ++r)
    RECMILL_RETURN_IF_ERROR(check_row(rows_[r], r, last_row_of).at(name_of("row", r)));
  return {};
}

double MixedIntegerProgram::objective(std::span<const double> values) const {
  double sum = 0.0;
  for (size_t c = 0; c < columns_.size(); ++c) sum += columns_[c].cost * values[c];
  return sum;
}

Status MixedIntegerProgram::check_values(std::span<const double> values) const {
  if (values.size() != columns_.size())
    return Status::Failed(fmt::format("{} values for {} columns", values.size(), columns_.size()));
  for (size_t c = 0; c < columns_.size(); ++c)
    RECMILL_RETURN_IF_ERROR(check_value(columns_[c], values[c]).at(name_of("column", c)));
  for (size_t r = 0; r < rows_.size(); ++r)
    RECMILL_RETURN_IF_ERROR(check_sum(rows_[r], values).at(name_of("row", r)));
  return {};
}

}  // namespace recmill::solve
