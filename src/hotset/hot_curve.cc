// SPDX-License-Identifier: Apache-2.0
#include "hotset/hot_curve.h"

#include <algorithm>

namespace recmill::hotset {
namespace {

/// Rows of one count.
struct Counted {
  int64_t rows = 0, bytes = 0;
  std::vector<int64_t> device_bytes;  // [devices]
};

void add_bytes(const HotProblemTable& table, int64_t rows, std::vector<int64_t>& device_bytes) {
  for (size_t d = 0; d < device_bytes.size(); ++d)
    if (table.device < 0 || table.device == static_cast<int>(d))
      device_bytes[d] += rows * table.row_bytes;
}

}  // namespace

HotCurve::HotCurve(const HotProblem& problem, const stats::AccessCounter& counts) {
  const auto devices = static_cast<size_t>(problem.devices);
  Counted hot{0, 0, std::vector<int64_t>(devices)};
  std::map<int64_t, Counted> by_count;
  int64_t far = 0;
  for (size_t t = 0; t < problem.tables.size(); ++t) {
    const HotProblemTable& table = problem.tables[t];
    if (table.always_hot) {
      hot.rows += table.rows;
      hot.bytes += table.rows * table.row_bytes;
      add_bytes(table, table.rows, hot.device_bytes);
      continue;
    }
    for (const stats::CountHistogram::Rows& of : counts.rows_by_count(t)) {
      Counted& counted = by_count[of.count];
      counted.device_bytes.resize(devices);
      counted.rows += of.rows;
      counted.bytes += of.rows * table.row_bytes;
      add_bytes(table, of.rows, counted.device_bytes);
      far += of.rows * of.count;
    }
  }
  // From the last cutoff, of no row, to the first.
  const auto add = [&](int64_t cutoff) {
    cutoffs_.push_back(cutoff);
    figures_.push_back({hot.rows, hot.bytes, 0, far});
    most_bytes_.push_back(*std::ranges::max_element(hot.device_bytes));
  };
  for (auto of = by_count.rbegin(); of != by_count.rend(); ++of) {
    add(of->first + 1);
    hot.rows += of->second.rows;
    hot.bytes += of->second.bytes;
    for (size_t d = 0; d < devices; ++d) hot.device_bytes[d] += of->second.device_bytes[d];
    far -= of->first * of->second.rows;
  }
  add(1);
  std::ranges::reverse(cutoffs_);
  std::ranges::reverse(figures_);
  std::ranges::reverse(most_bytes_);
}

// A cutoff between two makes the same rows hot as the one below it.
size_t HotCurve::index_of(int64_t cutoff) const {
  RECMILL_CHECK(cutoff >= 1);
  const auto above = std::ranges::upper_bound(cutoffs_, cutoff);
  return static_cast<size_t>(above - cutoffs_.begin()) - 1;
}

int64_t HotCurve::most_bytes(int64_t cutoff) const {
  return most_bytes_[index_of(cutoff)];
}

int64_t HotCurve::least_that_fits(int64_t bytes) const {
  for (size_t i = 0; i < cutoffs_.size(); ++i)
    if (most_bytes_[i] <= bytes) return cutoffs_[i];
  return 0;
}

HotFigures HotCurve::at(int64_t cutoff, const std::map<int64_t, int64_t>& inputs_by_least) const {
  HotFigures figures = figures_[index_of(cutoff)];
  for (auto of = inputs_by_least.lower_bound(cutoff); of != inputs_by_least.end(); ++of)
    figures.hot_inputs += of->second;
  return figures;
}

}  // namespace recmill::hotset
