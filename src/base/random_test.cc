// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>

namespace recmill {

TEST(Philox, equals_the_published_vectors) {
  EXPECT_EQ(philox({{0, 0, 0, 0}}, 0),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}}, ~uint64_t{0}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
                   (uint64_t{0x299f31d0} << 32) | 0xa4093822),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, is_a_function_of_what_it_is_for) {
  const Random a(7, Purpose::test, 3);
  const Random b(7, Purpose::test, 3);
  EXPECT_EQ(a.bits(12, 5), b.bits(12, 5));
  EXPECT_NE(a.bits(12, 5), Random(8, Purpose::test, 3).bits(12, 5));
  EXPECT_NE(a.bits(12, 5), Random(7, Purpose::dropout, 3).bits(12, 5));
  EXPECT_NE(a.bits(12, 5), Random(7, Purpose::test, 4).bits(12, 5));
  EXPECT_EQ(a.bits(12, 5), a.block(12, 1)[1]);
}

TEST(Random, has_the_moments_of_its_distribution) {
  const Random random(1, Purpose::test);
  const int count = 100000;
  double sum = 0, squares = 0, normal_sum = 0, normal_squares = 0;
  for (int i = 0; i < count; ++i) {
    const double u = random.uniform(i);
    sum += u;
    squares += u * u;
    const double n = random.normal(i, 1);
    normal_sum += n;
    normal_squares += n * n;
    ASSERT_LT(random.below(10, i), 10u);
  }
  EXPECT_NEAR(sum / count, 0.5, 0.005);
  EXPECT_NEAR(squares / count, 1.0 / 3, 0.005);
  EXPECT_NEAR(normal_sum / count, 0, 0.02);
  EXPECT_NEAR(normal_squares / count, 1, 0.03);
}

}  // namespace recmill
