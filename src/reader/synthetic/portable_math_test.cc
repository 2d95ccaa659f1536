// SPDX-License-Identifier: Apache-2.0
#include "reader/synthetic/portable_math.h"

#include <gtest/gtest.h>

#include <cmath>

namespace recmill::reader {

TEST(PortableMath, agrees_with_the_library_to_a_few_units_in_the_last_place) {
  for (double x = 1e-12; x < 1e13; x *= 1.0173) {
    const double expected = std::log(x);
    ASSERT_NEAR(portable_log(x), expected, 1e-15 + 4e-16 * std::abs(expected)) << x;
  }
  for (double x = -600; x < 600; x += 0.137) {
    const double expected = std::exp(x);
    ASSERT_NEAR(portable_exp(x), expected, 1e-15 * expected) << x;
    ASSERT_NEAR(portable_sigmoid(x), 1 / (1 + std::exp(-x)), 2e-16 + 1e-15 * portable_sigmoid(x));
  }
  for (double x = 0.5; x < 4e7; x *= 1.3) {
    for (double y : {-3.0, -1.05, -0.5, 0.0, 1.7}) {
      const double expected = std::pow(x, y);
      ASSERT_NEAR(portable_pow(x, y), expected, 4e-14 * expected) << x << " ^ " << y;
    }
  }
}

TEST(PortableMath, has_defined_ends) {
  EXPECT_EQ(portable_log(1.0), 0.0);
  EXPECT_EQ(portable_exp(0.0), 1.0);
  EXPECT_EQ(portable_exp(-1000.0), 0.0);
  EXPECT_TRUE(std::isfinite(portable_exp(1000.0)));
  EXPECT_EQ(portable_sigmoid(1000.0), 1.0);
  EXPECT_EQ(portable_sigmoid(-1000.0), 0.0);
  EXPECT_EQ(portable_sigmoid(0.0), 0.5);
}

TEST(PortableMath, has_these_bits_on_every_machine) {
  uint64_t hash = 0;
  for (int i = 1; i < 1000; ++i) {
    hash = hash * 31 + std::bit_cast<uint64_t>(portable_pow(i, -1.05));
    hash = hash * 31 + std::bit_cast<uint64_t>(portable_sigmoid(i * 0.01 - 5));
  }
  EXPECT_EQ(hash, 16457497361585218973ull);
}

}  // namespace recmill::reader
