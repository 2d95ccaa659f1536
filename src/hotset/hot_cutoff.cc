// SPDX-License-Identifier: Apache-2.0
#include "hotset/hot_cutoff.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace recmill::hotset {
namespace {

constexpr int64_t kMost = int64_t{1} << 62;

/// digits x 10^exponent
struct Decimal {
  uint64_t digits = 0;
  int exponent = 0;
};

Decimal shortest_decimal(double value) {
  char text[64];
  const auto end =
      std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr;
  Decimal decimal;
  const char* at = text;
  bool behind_point = false;
  for (; at != end && *at != 'e'; ++at) {
    if (*at == '.') {
      behind_point = true;
      continue;
    }
    decimal.digits = decimal.digits * 10 + static_cast<uint64_t>(*at - '0');
    decimal.exponent -= behind_point ? 1 : 0;
  }
  int power = 0;
  const bool negative = at + 1 < end && at[1] == '-';
  std::from_chars(at + 2, end, power);
  decimal.exponent += negative ? -power : power;
  return decimal;
}

}  // namespace

int64_t cutoff_of(double threshold, int64_t inputs) {
  RECMILL_CHECK(threshold > 0 && std::isfinite(threshold) && inputs >= 0);
  const Decimal decimal = shortest_decimal(threshold);
  // At most 17 digits by 63 bits: below 2^120.
  auto value = static_cast<unsigned __int128>(decimal.digits) * static_cast<uint64_t>(inputs);
  for (int e = decimal.exponent; e > 0; --e) {
    if (value > kMost) return kMost;
    value *= 10;
  }
  for (int e = decimal.exponent; e < 0 && value > 0; ++e)
    value = value / 10 + (value % 10 > 0 ? 1 : 0);  // ceil(ceil(a / 10) / 10) = ceil(a / 100)
  if (value > kMost) return kMost;
  return std::max<int64_t>(1, static_cast<int64_t>(value));
}

}  // namespace recmill::hotset
