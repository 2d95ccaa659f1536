// SPDX-License-Identifier: Apache-2.0
#include "solve/exhaustive.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace recmill::solve {
namespace {

struct WholeBounds {
  int64_t lower, upper;  // lower > upper: no whole number is within the bounds
};

Result<WholeBounds> whole_bounds(const Column& column) {
  if (!column.integer) return Status::Failed("is continuous, and only whole numbers can be tried");
  constexpr double kLargest = 1e15;  // whole numbers below are exact
  if (!(column.lower >= -kLargest && column.upper <= kLargest))
    return Status::Failed(
        fmt::format("bounds {} to {} are too far apart", column.lower, column.upper));
  return WholeBounds{static_cast<int64_t>(std::ceil(column.lower)),
                     static_cast<int64_t>(std::floor(column.upper))};
}

Result<std::vector<WholeBounds>> all_whole_bounds(const MixedIntegerProgram& program,
                                                  int64_t most_combinations) {
  std::vector<WholeBounds> bounds;
  int64_t combinations = 1;
  for (const Column& column : program.columns()) {
    auto made = whole_bounds(column);
    if (!made.ok()) return made.status().at(fmt::format("column {}", bounds.size()));
    bounds.push_back(*made);
    const int64_t values = std::max<int64_t>(1, made->upper - made->lower + 1);
    if (combinations > most_combinations / values)
      return Status::Failed(
          fmt::format("there are more than {} combinations of whole values", most_combinations));
    combinations *= values;
  }
  return bounds;
}

/// The values that a row can still have.
struct Reach {
  double low = 0.0, high = 0.0;
  double slack = 2.0 * kTolerance;  // more than check_values() allows
};

/// Goes through the columns from the first to the last, each from its lower to its upper bound.
class Search {
 public:
  Search(const MixedIntegerProgram& program, std::vector<WholeBounds> bounds)
      : program_(program),
        bounds_(std::move(bounds)),
        rows_of_(bounds_.size()),
        reach_(program.rows().size()),
        values_(bounds_.size()) {
    for (size_t r = 0; r < reach_.size(); ++r) {
      for (const Entry& entry : program.rows()[r].entries) {
        rows_of_[entry.column].push_back({static_cast<int64_t>(r), entry.value});
        const auto [low, high] = terms(entry.column, entry.value);
        reach_[r].low += low;
        reach_[r].high += high;
        const double largest = std::max(std::fabs(low), std::fabs(high));
        reach_[r].slack = std::max(reach_[r].slack, 2.0 * (kTolerance + kSumRounding * largest));
      }
    }
  }

  Solution run() {
    best_.outcome = Outcome::infeasible;
    visit(0);
    best_.dual_bound = best_.objective;
    return std::move(best_);
  }

 private:
  struct RowEntry {
    int64_t row;
    double value;
  };

  /// The smallest and the largest that `value` times the column can be.
  std::pair<double, double> terms(int64_t column, double value) const {
    return std::minmax({value * static_cast<double>(bounds_[column].lower),
                        value * static_cast<double>(bounds_[column].upper)});
  }

  bool within_reach(int64_t row) const {
    const Row& bounds = program_.rows()[row];
    const Reach& reach = reach_[row];
    return reach.low <= bounds.upper + reach.slack && reach.high >= bounds.lower - reach.slack;
  }

  void visit(size_t column) {
    ++best_.nodes;
    if (column == bounds_.size()) return compare();
    const std::vector<Reach> before = reach_;
    for (int64_t value = bounds_[column].lower; value <= bounds_[column].upper; ++value) {
      values_[column] = static_cast<double>(value);
      bool possible = true;
      for (const RowEntry& entry : rows_of_[column]) {
        const auto [low, high] = terms(column, entry.value);
        Reach& reach = reach_[entry.row];
        reach.low = before[entry.row].low - low + entry.value * values_[column];
        reach.high = before[entry.row].high - high + entry.value * values_[column];
        possible &= within_reach(entry.row);
      }
      if (possible) visit(column + 1);
    }
    reach_ = before;
  }

  void compare() {
    const double objective = program_.objective(values_);
    if (objective >= best_.objective || !program_.check_values(values_).ok()) return;
    best_.outcome = Outcome::optimal;
    best_.objective = objective;
    best_.values = values_;
  }

  const MixedIntegerProgram& program_;
  std::vector<WholeBounds> bounds_;
  std::vector<std::vector<RowEntry>> rows_of_;  // of each column
  std::vector<Reach> reach_;                    // of each row
  std::vector<double> values_;
  Solution best_;
};

}  // namespace

Result<Solution> solve_exhaustively(const MixedIntegerProgram& program, int64_t most_combinations) {
  RECMILL_RETURN_IF_ERROR(program.check());
  RECMILL_ASSIGN_OR_RETURN(auto bounds, all_whole_bounds(program, most_combinations));
  return Search(program, std::move(bounds)).run();
}

}  // namespace recmill::solve
