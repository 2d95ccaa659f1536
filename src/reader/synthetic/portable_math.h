// SPDX-License-Identifier: Apache-2.0
// Logarithm, exponential and power by IEEE additions, multiplications and divisions alone. The C
// library's differ in their last bit from machine to machine; synthetic data, whose bytes are a
// function of the seed, must not. Relative error below 4e-15 in the ranges that the tests name.
#pragma once

#include <bit>
#include <cstdint>

namespace recmill::reader {

/// Natural logarithm of a normal, positive number.
constexpr double portable_log(double x) {
  constexpr double ln2_high = 0x1.62e42fefa3800p-1, ln2_low = 0x1.ef35793c76730p-45;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFull) | 0x3FF0000000000000ull);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  // log(m) = 2 atanh(f), |f| <= 0.1716.
  const double f = (m - 1.0) / (m + 1.0);
  const double f2 = f * f;
  double series = 0.0;
  for (int k = 23; k >= 3; k -= 2) series = (series + 1.0 / k) * f2;
  return exponent * ln2_high + (2.0 * f + (2.0 * f * series + exponent * ln2_low));
}

/// e^x; 0 below -700, and x is taken as 700 above it.
constexpr double portable_exp(double x) {
  constexpr double ln2_high = 0x1.62e42fefa3800p-1, ln2_low = 0x1.ef35793c76730p-45;
  if (x < -700.0) return 0.0;
  if (x > 700.0) x = 700.0;
  const double scaled = x * 1.4426950408889634;
  const int n = static_cast<int>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  const double r = (x - n * ln2_high) - n * ln2_low;
  double sum = 1.0;
  for (int k = 14; k >= 1; --k) sum = 1.0 + sum * r / k;
  return sum * std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52);
}

/// x^y for a normal, positive x.
constexpr double portable_pow(double x, double y) {
  return portable_exp(y * portable_log(x));
}

constexpr double portable_sigmoid(double x) {
  // By the smaller exponential, so that neither end overflows.
  if (x >= 0) return 1.0 / (1.0 + portable_exp(-x));
  const double e = portable_exp(x);
  return e / (1.0 + e);
}

}  // namespace recmill::reader
