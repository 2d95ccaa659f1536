// SPDX-License-Identifier: Apache-2.0
#include "kernels/interaction/interaction.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <vector>

#include "base/bfloat16.h"
#include "base/random.h"

namespace recmill::kernels::interaction {
namespace {

constexpr uint64_t kSeed = 17;
constexpr int64_t kGap = 3;  // floats behind the rows of a sample that nobody may touch

std::vector<float> random_floats(int64_t size, uint64_t stream) {
  const Random random(kSeed, Purpose::test, stream);
  std::vector<float> values(static_cast<size_t>(size));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 2 * random.uniform(i) - 1;
  return values;
}

// Elements of spec.precision, as bytes and as what they mean.
struct Elements {
  std::vector<float> wide;
  std::vector<BFloat16> narrow;

  Elements(Precision precision, const std::vector<float>& values) {
    if (precision == Precision::float32) wide = values;
    if (precision == Precision::bfloat16) {
      for (float value : values) narrow.push_back(to_bfloat16(value));
    }
  }
  void* data() { return narrow.empty() ? static_cast<void*>(wide.data()) : narrow.data(); }
  std::vector<float> values() const {
    std::vector<float> values = wide;
    for (BFloat16 value : narrow) values.push_back(to_float(value));
    return values;
  }
};

struct Outcome {
  std::vector<float> out, bottom_gradient, row_gradient;
};

// Forward and backward over `samples`, `step` of them at a time, by the kernels or the reference.
Outcome run(const InteractionSpec& s, int64_t samples, int64_t step, bool by_reference) {
  const int64_t stride = s.features * s.dim + kGap;
  const auto bottom = random_floats(samples * s.dim, 1);
  const auto rows = random_floats(samples * stride, 2);
  Elements out(s.precision, random_floats(samples * s.outputs(), 3));
  Elements dout(s.precision, random_floats(samples * s.outputs(), 4));
  Outcome result{{}, random_floats(samples * s.dim, 5), random_floats(samples * stride, 6)};
  std::vector<float> scratch(static_cast<size_t>(scratch_size(s)));
  for (int64_t i = 0; i < samples; i += step) {
    const int64_t count = std::min(step, samples - i);
    const int64_t at = i * s.outputs() * bytes_of(s.precision);
    const Vectors v{s.bottom ? bottom.data() + i * s.dim : nullptr, rows.data() + i * stride,
                    stride};
    const VectorGradients g{s.bottom ? result.bottom_gradient.data() + i * s.dim : nullptr,
                            result.row_gradient.data() + i * stride, stride};
    char *to = static_cast<char*>(out.data()) + at, *from = static_cast<char*>(dout.data()) + at;
    if (by_reference) {
      reference::forward(s, count, v, to);
      reference::backward(s, count, v, from, g);
    } else {
      forward(s, count, v, to, scratch.data());
      backward(s, count, v, from, g, scratch.data());
    }
  }
  result.out = out.values();
  return result;
}

void expect_near(const std::vector<float>& actual, const std::vector<float>& expected,
                 int64_t terms, float relative, const char* what) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const float absolute = 2e-7f * static_cast<float>(terms + 1);
    ASSERT_NEAR(actual[i], expected[i], absolute + relative * std::abs(expected[i]))
        << what << "[" << i << "], seed " << kSeed;
  }
}

std::vector<InteractionSpec> specs() {
  std::vector<InteractionSpec> all;
  for (Precision precision : {Precision::float32, Precision::bfloat16}) {
    for (bool bottom : {true, false}) {
      for (auto [features, dim] : {std::pair{26, 16},
                                   {1, 1},
                                   {2, 7},
                                   {7, 48},
                                   {8, 17},
                                   {15, 15},
                                   {16, 33},
                                   {31, 4},
                                   {33, 64},
                                   {70, 5}}) {
        all.push_back({features, dim, bottom, precision});
      }
    }
    all.push_back({0, 5, true, precision});
  }
  return all;
}

TEST(Interaction, equals_the_reference_on_every_target) {
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    for (const InteractionSpec& s : specs()) {
      SCOPED_TRACE(testing::Message() << hwy::TargetName(target) << ", " << s.features
                                      << " features of " << s.dim << ", bottom " << s.bottom);
      for (int64_t samples : {0, 1, 5}) {
        const auto actual = run(s, samples, 5, false), expected = run(s, samples, 5, true);
        const float rounding = s.precision == Precision::bfloat16 ? 1.0f / 128 : 0;
        expect_near(actual.out, expected.out, s.dim, rounding, "out");
        expect_near(actual.bottom_gradient, expected.bottom_gradient, s.vectors(), 0, "bottom");
        expect_near(actual.row_gradient, expected.row_gradient, s.vectors(), 0, "rows");
        if (HasFatalFailure()) return;
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST(Interaction, computes_each_sample_alone) {
  for (const InteractionSpec& s : specs()) {
    const auto together = run(s, 5, 5, false), alone = run(s, 5, 1, false);
    EXPECT_EQ(together.out, alone.out);
    EXPECT_EQ(together.bottom_gradient, alone.bottom_gradient);
    EXPECT_EQ(together.row_gradient, alone.row_gradient);
  }
}

TEST(Interaction, orders_pairs_as_the_lower_triangle_by_rows) {
  const InteractionSpec s{3, 1, true, Precision::float32};
  const std::vector<float> bottom = {2}, rows = {3, 5, 7};
  std::vector<float> out(7), scratch(static_cast<size_t>(scratch_size(s)));
  forward(s, 1, {bottom.data(), rows.data(), 3}, out.data(), scratch.data());
  EXPECT_EQ(out, (std::vector<float>{2, 6, 10, 15, 14, 21, 35}));
}

}  // namespace
}  // namespace recmill::kernels::interaction
