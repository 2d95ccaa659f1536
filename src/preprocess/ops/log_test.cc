// SPDX-License-Identifier: Apache-2.0
#include "preprocess/ops/log.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace recmill::preprocess {

TEST(Log, is_within_1_5_units_in_the_last_place) {
  const Log log;
  double worst = 0;
  float worst_at = 0;
  // Every 331st positive float: all exponents, 6.4 million values.
  for (uint32_t bits = 1; bits < 0x7F800000; bits += 331) {
    const float x = std::bit_cast<float>(bits);
    const double exact = std::log1p(static_cast<double>(x));
    const auto nearest = static_cast<float>(exact);
    const double ulp = std::nextafter(nearest, std::numeric_limits<float>::infinity()) - nearest;
    const double error = std::abs(log.plain(x) - exact) / ulp;
    if (error > worst) {
      worst = error;
      worst_at = x;
    }
  }
  EXPECT_LT(worst, 1.5) << worst_at;
}

TEST(Log, has_golden_values_at_the_edges) {
  const Log log;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(log.plain(-3.0f), 0.0f);
  EXPECT_EQ(log.plain(-kInfinity), 0.0f);
  EXPECT_EQ(log.plain(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(log.plain(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_EQ(log.plain(1e-40f), 1e-40f);
  EXPECT_EQ(log.plain(1.0f), 0x1.62e430p-1f);
  EXPECT_EQ(log.plain(1382.0f), 0x1.ced942p+2f);
  EXPECT_EQ(log.plain(std::numeric_limits<float>::max()), 0x1.62e430p+6f);
}

}  // namespace recmill::preprocess
