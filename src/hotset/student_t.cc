// SPDX-License-Identifier: Apache-2.0
#include "hotset/student_t.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/status.h"

namespace recmill::hotset {
namespace {

/// Probability of [-t, t]: the finite series of Abramowitz and Stegun, 26.7.3 and 26.7.4.
double probability_within(double t, int64_t degrees) {
  const auto n = static_cast<double>(degrees);
  const double cosine_squared = n / (n + t * t);
  const double sine = std::sqrt(1.0 - cosine_squared);
  const bool odd = degrees % 2 == 1;
  double term = odd ? std::sqrt(cosine_squared) : 1.0, sum = degrees == 1 ? 0.0 : term;
  for (int64_t k = odd ? 3 : 2; k <= degrees - 2; k += 2) {
    term *= cosine_squared * static_cast<double>(k - 1) / static_cast<double>(k);
    sum += term;
  }
  if (!odd) return sine * sum;
  const double angle = std::atan(t / std::sqrt(n));
  return 2.0 / std::numbers::pi * (angle + sine * sum);
}

}  // namespace

double two_sided_t(double confidence, int64_t degrees) {
  RECMILL_CHECK(confidence > 0 && confidence < 1 && degrees >= 1);
  degrees = std::min<int64_t>(degrees, 10000);
  double low = 0, high = 1;
  while (probability_within(high, degrees) < confidence && high < 1e12) high *= 2;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) * 0.5;
    (probability_within(middle, degrees) < confidence ? low : high) = middle;
  }
  return high;
}

}  // namespace recmill::hotset
