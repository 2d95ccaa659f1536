// SPDX-License-Identifier: Apache-2.0
#include "base/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace recmill {
namespace {

double mean(const std::vector<float>& values) {
  ExactSum sum;
  for (const float value : values) sum.add(value);
  return sum.mean(static_cast<int64_t>(values.size()));
}

TEST(ExactSum, loses_nothing_to_what_is_larger) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  constexpr float kLeast = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(mean({1.0f, 2.0f, 6.0f}), 3.0);
  EXPECT_EQ(mean({kLargest, 3.0f, -kLargest}), 1.0);
  EXPECT_EQ(mean({-kLargest, -kLargest, kLeast, kLargest, kLargest}), kLeast / 5.0);
  EXPECT_EQ(mean({kLargest, kLargest, kLargest}), kLargest);
  EXPECT_EQ(mean({-0.5f, -0.25f}), -0.375);
  EXPECT_EQ(mean({-kLeast, kLeast, -kLeast}), -kLeast / 3.0);
}

// Integers below 2^24 times 2^-30 add without a rounding in float64.
TEST(ExactSum, is_that_of_float64_where_float64_is_exact) {
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 1000; ++trial) {
    std::vector<float> values(1 + random() % 100);
    double sum = 0.0;
    for (float& value : values) {
      value = static_cast<float>(static_cast<int64_t>(random() % (1 << 25)) - (1 << 24)) * 0x1p-30f;
      sum += value;
    }
    EXPECT_EQ(mean(values), sum / static_cast<double>(values.size()));
  }
}

TEST(ExactSum, is_the_same_in_every_order_and_in_parts) {
  std::mt19937_64 random(11);
  for (int trial = 0; trial < 1000; ++trial) {
    std::vector<float> values(1 + random() % 60);
    for (float& value : values) {
      do value = std::bit_cast<float>(static_cast<uint32_t>(random()));
      while (!std::isfinite(value));
    }
    const double whole = mean(values);
    std::ranges::shuffle(values, random);
    ExactSum first, second;
    for (size_t i = 0; i < values.size(); ++i) (i % 3 == 0 ? first : second).add(values[i]);
    second.add(first);
    EXPECT_EQ(second.mean(static_cast<int64_t>(values.size())), whole);
  }
}

TEST(ExactSum, carries_before_a_digit_is_full) {
  ExactSum sum;
  sum.add(-1.0f);
  for (int doubled = 0; doubled < 62; ++doubled) {  // -2^62
    const ExactSum half = sum;
    sum.add(half);
  }
  sum.add(-0x1p62f);
  EXPECT_EQ(sum.mean(1), -0x1p63);
  sum.add(1.0f);
  sum.add(0x1p63f);
  EXPECT_EQ(sum.mean(1), 1.0);
}

}  // namespace
}  // namespace recmill
