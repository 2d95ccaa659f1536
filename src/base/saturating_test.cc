// SPDX-License-Identifier: Apache-2.0
#include "base/saturating.h"

#include <gtest/gtest.h>

namespace recmill {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST(Saturating, is_exact_as_far_as_64_bits_reach_and_then_stays_at_the_largest) {
  EXPECT_EQ(saturating_product({3, 5, 7}), 105);
  EXPECT_EQ(saturating_product({}), 1);
  EXPECT_EQ(saturating_product({int64_t{1} << 31, int64_t{1} << 31}), int64_t{1} << 62);
  EXPECT_EQ(saturating_product({int64_t{1} << 32, int64_t{1} << 31}), kMost);
  EXPECT_EQ(saturating_product({kMost, kMost, 2}), kMost);
  EXPECT_EQ(saturating_product({kMost, kMost, 0}), 0);
  EXPECT_EQ(saturating_sum({1, 2, 3}), 6);
  EXPECT_EQ(saturating_sum({kMost - 1, 1}), kMost);
  EXPECT_EQ(saturating_sum({kMost, 1}), kMost);
}

}  // namespace
}  // namespace recmill
