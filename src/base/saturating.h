// SPDX-License-Identifier: Apache-2.0
// Arithmetic of sizes that are not known to be possible.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>

namespace recmill {

/// More bytes than any machine has. What takes no more can be multiplied by a hundred.
inline constexpr int64_t kMostBytes = int64_t{1} << 56;

/// Of numbers from 0 on; the largest integer where the exact result is beyond it.
constexpr int64_t saturating_product(std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  bool beyond = false;
  for (const int64_t factor : factors) {
    if (factor == 0) return 0;
    beyond = beyond || __builtin_mul_overflow(product, factor, &product);
  }
  return beyond ? std::numeric_limits<int64_t>::max() : product;
}
constexpr int64_t saturating_sum(std::initializer_list<int64_t> terms) {
  int64_t sum = 0;
  for (const int64_t term : terms) {
    if (__builtin_add_overflow(sum, term, &sum)) return std::numeric_limits<int64_t>::max();
  }
  return sum;
}

}  // namespace recmill
