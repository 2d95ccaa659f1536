// SPDX-License-Identifier: Apache-2.0
#include "kernels/row_update/rounding.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/random.h"

namespace recmill::kernels {
namespace {

TEST(Float16, converts_every_value_there_and_back) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const Float16 half{static_cast<uint16_t>(bits)};
    const float value = to_float(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(to_float(to_float16(value))));
    } else {
      ASSERT_EQ(to_float16(value).bits, bits);
    }
  }
}

TEST(Float16, rounds_to_nearest_and_ties_to_even) {
  EXPECT_EQ(to_float(to_float16(1.0f + 0x1p-11f)), 1.0f);
  EXPECT_EQ(to_float(to_float16(1.0f + 0x3p-11f)), 1.0f + 0x1p-9f);
  EXPECT_EQ(to_float(to_float16(1.0f + 0x1.8p-11f)), 1.0f + 0x1p-10f);
  EXPECT_EQ(to_float(to_float16(0x1p-25f)), 0.0f);
  EXPECT_EQ(to_float(to_float16(0x1.8p-25f)), 0x1p-24f);
  EXPECT_EQ(to_float(to_float16(65519.0f)), 65504.0f);
  EXPECT_TRUE(std::isinf(to_float(to_float16(65520.0f))));
}

/// Every result is one of the two neighbours, and the mean of many is the value.
template <class Round>
void expect_unbiased(float value, const Round& round) {
  const Random random(9, Purpose::test);
  double sum = 0.0;
  float low = std::numeric_limits<float>::infinity(), high = -low;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    const float rounded = to_float(round(value, random.bits(i)));
    sum += rounded;
    low = std::min(low, rounded);
    high = std::max(high, rounded);
  }
  EXPECT_LE(low, value);
  EXPECT_GE(high, value);
  const double step = std::max<double>(high - low, 1e-30);
  EXPECT_NEAR(sum / kDraws, value, 0.02 * step) << value;
}

TEST(StochasticRounding, is_unbiased_between_the_two_neighbours) {
  for (float value : {1.0009f, -0.3333333f, 3.0e-5f, -4.1e-7f, 1234.567f, 2.9e-8f}) {
    expect_unbiased(value, round_stochastically_to_float16);
    expect_unbiased(value, round_stochastically_to_bfloat16);
  }
}

TEST(StochasticRounding, leaves_values_that_the_precision_holds) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float half = to_float(Float16{static_cast<uint16_t>(bits)});
    const float brain = to_float(BFloat16{static_cast<uint16_t>(bits)});
    for (uint32_t word : {0u, 1u, 0x80000000u, 0xFFFFFFFFu}) {
      if (!std::isnan(half)) {
        ASSERT_EQ(to_float(round_stochastically_to_float16(half, word)), half);
      }
      if (!std::isnan(brain)) {
        ASSERT_EQ(to_float(round_stochastically_to_bfloat16(brain, word)), brain);
      }
    }
  }
}

}  // namespace
}  // namespace recmill::kernels
