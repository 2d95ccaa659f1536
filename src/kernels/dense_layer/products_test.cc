// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense_layer/products.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/random.h"

namespace recmill::kernels::dense_layer {
namespace {

constexpr uint64_t kSeed = 47;
constexpr int64_t kWidth = product_panels(1).width;
// Behind C, so that a store too many is seen.
constexpr int64_t kGuard = 64;

std::vector<float> numbers(int64_t size, uint64_t stream) {
  const Random random(kSeed, Purpose::test, stream);
  std::vector<float> values;
  for (int64_t i = 0; i < size; ++i) {
    values.push_back(2 * random.uniform(static_cast<uint64_t>(i)) - 1);
  }
  return values;
}

// B [depth][columns] as `p` wants it.
std::vector<float> stored(const Product& p, const std::vector<float>& b) {
  if (!p.b_in_panels) return b;
  std::vector<float> panels((p.columns + kWidth - 1) / kWidth * kWidth * p.depth, 0.0f);
  for (int64_t k = 0; k < p.depth; ++k) {
    for (int64_t n = 0; n < p.columns; ++n) {
      panels[n / kWidth * kWidth * p.depth + k * kWidth + n % kWidth] = b[k * p.columns + n];
    }
  }
  return panels;
}

// products.h, word for word.
void plain_multiply(const Product& p, const std::vector<float>& b, bool has_fma, float* c) {
  for (int64_t m = 0; m < p.rows; ++m) {
    for (int64_t n = 0; n < p.columns; ++n) {
      float sum = 0;
      for (int64_t k = 0; k < p.depth; ++k) {
        const float x = p.a_transposed ? p.a[k * p.a_stride + m] : p.a[m * p.a_stride + k];
        const float y = b[k * p.columns + n];
        sum = has_fma ? std::fma(x, y, sum) : sum + x * y;
      }
      if (p.bias) sum += p.bias[m];
      if (p.relu && sum < 0) sum = 0;
      float& to = c[m * p.columns + n];
      to = p.accumulate ? to + sum : sum;
    }
  }
}

void check(Product p, int64_t target) {
  SCOPED_TRACE(testing::Message() << hwy::TargetName(target) << " " << p.rows << " x " << p.columns
                                  << " x " << p.depth << (p.a_transposed ? " transposed" : "")
                                  << (p.b_in_panels ? " panels" : " rows") << ", seed " << kSeed);
  const auto a = numbers((p.rows + 3) * (p.depth + 3), 1), b = numbers(p.depth * p.columns, 2);
  const auto bias = numbers(p.rows, 3), in = stored(p, b);
  auto actual = numbers(p.rows * p.columns + kGuard, 4), expected = actual;
  p.a = a.data();
  p.a_stride = (p.a_transposed ? p.rows : p.depth) + 3;
  p.b = in.data();
  p.c = actual.data();
  if (p.relu) p.bias = bias.data();
  multiply(p);
  plain_multiply(p, b, target <= HWY_AVX2, expected.data());
  EXPECT_EQ(std::memcmp(actual.data(), expected.data(), actual.size() * sizeof(float)), 0);
}

// Around tiles of 6 and 14 rows, vectors of 4, 8 and 16 columns and panels of 32.
TEST(Products, have_the_bits_of_the_plain_fold_at_the_edges_of_tiles_on_every_target) {
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    for (int64_t rows : {0, 1, 5, 6, 7, 13, 14, 15, 29}) {
      for (int64_t columns : {0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 80}) {
        for (int64_t depth : {0, 1, 2, 31, 128, 129}) {
          for (int form = 0; form < 8 && !testing::Test::HasFailure(); ++form) {
            check({.rows = rows,
                   .columns = columns,
                   .depth = depth,
                   .a_transposed = form / 2 % 2 == 1,
                   .b_in_panels = form % 2 == 1,
                   .relu = form / 4 == 1,
                   .accumulate = form / 2 == 1},
                  target);
          }
        }
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST(Products, are_folds_over_any_depth_and_number_of_rows) {
  const int64_t best = hwy::SupportedTargets() & -hwy::SupportedTargets();
  check({.rows = 300, .columns = 70, .depth = 2000}, best);
  check({.rows = 128, .columns = 70, .depth = 2000, .b_in_panels = true}, best);
  // More than what is near of B.
  for (int form = 0; form < 8; ++form) {
    check({.rows = 17,
           .columns = 70,
           .depth = 5003,
           .a_transposed = form / 2 % 2 == 1,
           .b_in_panels = form % 2 == 1,
           .relu = form / 4 == 1,
           .accumulate = form == 5},
          best);
  }
}

TEST(Products, hand_on_what_is_no_number) {
  const std::vector<float> a = {std::numeric_limits<float>::quiet_NaN(), -1};
  const std::vector<float> b = {1, 2, 3};
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    std::vector<float> c(6);
    multiply({.rows = 2,
              .columns = 3,
              .depth = 1,
              .a = a.data(),
              .a_stride = 1,
              .b = b.data(),
              .c = c.data(),
              .relu = true});
    for (int n = 0; n < 3; ++n) {
      EXPECT_TRUE(std::isnan(c[n])) << hwy::TargetName(target);
      EXPECT_EQ(c[3 + n], 0) << hwy::TargetName(target);
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace
}  // namespace recmill::kernels::dense_layer
