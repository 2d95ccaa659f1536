// SPDX-License-Identifier: Apache-2.0
#include "bench/cost_model/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/status.h"

namespace recmill::bench {
namespace {

constexpr double kDependent = 1e-9;  // of a column's squares, what others leave of it

std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0, end; begin < order.size(); begin = end) {
    for (end = begin + 1; end < order.size() && values[order[end]] == values[order[begin]];) ++end;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = static_cast<double>(begin + end - 1) / 2;
  }
  return ranks;
}

using Matrix = std::vector<std::vector<double>>;

// Solves `a` x = `b`, a symmetric matrix whose diagonal is 1, by Gauss. x is 0 where a row is made
// up by those before it.
std::vector<double> solve(Matrix a, std::vector<double> b) {
  const size_t count = b.size();
  for (size_t k = 0; k < count; ++k) {
    if (a[k][k] < kDependent) continue;
    for (size_t i = 0; i < count; ++i) {
      if (i == k) continue;
      const double factor = a[i][k] / a[k][k];
      for (size_t j = 0; j < count; ++j) a[i][j] -= factor * a[k][j];
      b[i] -= factor * b[k];
    }
  }
  std::vector<double> x(count);
  for (size_t k = 0; k < count; ++k) x[k] = a[k][k] < kDependent ? 0 : b[k] / a[k][k];
  return x;
}

// The factors of the terms in `used`, of terms over values.
std::vector<double> least_squares(const Matrix& relative, const std::vector<size_t>& used) {
  std::vector<double> norms;
  for (const size_t k : used) {
    double squares = 0;
    for (const auto& row : relative) squares += row[k] * row[k];
    norms.push_back(squares > 0 ? std::sqrt(squares) : 1.0);
  }
  Matrix a(used.size(), std::vector<double>(used.size()));
  std::vector<double> b(used.size());
  for (const auto& row : relative) {
    for (size_t i = 0; i < used.size(); ++i) {
      b[i] += row[used[i]] / norms[i];
      for (size_t j = 0; j < used.size(); ++j)
        a[i][j] += row[used[i]] / norms[i] * row[used[j]] / norms[j];
    }
  }
  std::vector<double> factors = solve(std::move(a), std::move(b));
  for (size_t i = 0; i < used.size(); ++i) factors[i] /= norms[i];
  return factors;
}

}  // namespace

double spearman(std::span<const double> a, std::span<const double> b) {
  RECMILL_CHECK(a.size() == b.size() && a.size() >= 2, std::to_string(a.size()));
  const std::vector<double> x = ranks_of(a), y = ranks_of(b);
  const double mean = static_cast<double>(a.size() - 1) / 2;
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
    xy += (x[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

double relative_error(double predicted, double measured) {
  return std::abs(predicted - measured) / measured;
}

std::vector<double> fit_costs(std::span<const std::vector<double>> terms,
                              std::span<const double> values) {
  RECMILL_CHECK(!terms.empty() && terms.size() == values.size(), std::to_string(values.size()));
  Matrix relative(terms.begin(), terms.end());
  for (size_t i = 0; i < values.size(); ++i)
    for (double& term : relative[i]) term /= values[i];
  std::vector<size_t> used(relative[0].size());
  std::iota(used.begin(), used.end(), size_t{0});
  std::vector<double> factors(used.size());
  while (!used.empty()) {
    const std::vector<double> found = least_squares(relative, used);
    const auto least = std::ranges::min_element(found);
    if (*least < 0) {
      used.erase(used.begin() + (least - found.begin()));
      continue;
    }
    for (size_t i = 0; i < used.size(); ++i) factors[used[i]] = found[i];
    break;
  }
  return factors;
}

}  // namespace recmill::bench
