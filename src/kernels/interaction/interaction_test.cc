// SPDX-License-Identifier: Apache-2.0
#include "kernels/interaction/interaction.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
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

// A block's numbers, [samples][width], as the kernels want them: by feature or by sample, in
// float32 or in bfloat16.
class Block {
 public:
  Block(const InteractionSpec& s, Precision precision, const float* values, int64_t samples,
        int64_t width)
      : by_feature_(s.by_feature()), samples_(samples), width_(width) {
    for (int64_t i = 0; i < samples * width; ++i) {
      const float value = values[canonical(i)];
      precision == Precision::float32 ? wide_.push_back(value)
                                      : narrow_.push_back(to_bfloat16(value));
    }
  }
  void* data() { return narrow_.empty() ? static_cast<void*>(wide_.data()) : narrow_.data(); }
  void write_to(float* values) const {
    for (int64_t i = 0; i < samples_ * width_; ++i) {
      const auto at = static_cast<size_t>(i);
      values[canonical(i)] = narrow_.empty() ? wide_[at] : to_float(narrow_[at]);
    }
  }

 private:
  // Where element i is in [samples][width].
  int64_t canonical(int64_t i) const {
    return by_feature_ ? i % samples_ * width_ + i / samples_ : i;
  }
  const bool by_feature_;
  const int64_t samples_, width_;
  std::vector<float> wide_;
  std::vector<BFloat16> narrow_;
};

struct Outcome {
  std::vector<float> out, bottom_gradient, row_gradient;
};

// What forward and backward take, by sample, and what was where they write.
struct Problem {
  Problem(const InteractionSpec& s, int64_t samples)
      : stride(s.features * s.dim + kGap),
        bottom(random_floats(samples * s.dim, 1)),
        rows(random_floats(samples * stride, 2)),
        dout(random_floats(samples * s.outputs(), 4)),
        before{random_floats(samples * s.outputs(), 3), random_floats(samples * s.dim, 5),
               random_floats(samples * stride, 6)} {}
  int64_t stride;
  std::vector<float> bottom, rows, dout;
  Outcome before;
};

// Forward and backward over `samples`, `step` of them at a time, by the kernels or the reference.
Outcome run(const InteractionSpec& s, int64_t samples, int64_t step, bool by_reference) {
  const Problem problem(s, samples);
  const int64_t stride = problem.stride;
  const auto &bottom = problem.bottom, &rows = problem.rows, &dout = problem.dout;
  Outcome result = problem.before;
  std::vector<float> scratch(static_cast<size_t>(scratch_size(s)));
  for (int64_t i = 0; i < samples; i += step) {
    const int64_t count = std::min(step, samples - i);
    const auto block = [&](const std::vector<float>& values, Precision precision, int64_t width) {
      return Block(s, precision, values.data() + i * width, count, width);
    };
    Block v0 = block(bottom, Precision::float32, s.dim);
    Block dv0 = block(result.bottom_gradient, Precision::float32, s.dim);
    Block out = block(result.out, s.precision, s.outputs());
    Block gradient = block(dout, s.precision, s.outputs());
    const Vectors v{s.bottom ? static_cast<float*>(v0.data()) : nullptr, rows.data() + i * stride,
                    stride};
    const VectorGradients g{s.bottom ? static_cast<float*>(dv0.data()) : nullptr,
                            result.row_gradient.data() + i * stride, stride};
    if (by_reference) {
      reference::forward(s, count, v, out.data());
      reference::backward(s, count, v, gradient.data(), g);
    } else {
      forward(s, count, v, out.data(), scratch.data());
      backward(s, count, v, gradient.data(), g, scratch.data());
    }
    out.write_to(result.out.data() + i * s.outputs());
    dv0.write_to(result.bottom_gradient.data() + i * s.dim);
  }
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
      for (int64_t samples : {0, 1, 5, 16, 35}) {
        const auto actual = run(s, samples, 35, false), expected = run(s, samples, 35, true);
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

// interaction.h's order of summation, word for word, in float32 over the numbers that run() takes.
Outcome folded(const InteractionSpec& s, int64_t samples, bool has_fma) {
  const Problem problem(s, samples);
  const int64_t stride = problem.stride;
  const auto &bottom = problem.bottom, &rows = problem.rows, &dout = problem.dout;
  Outcome result = problem.before;
  const auto add = [&](float sum, float a, float b) {
    return has_fma ? std::fma(a, b, sum) : sum + a * b;
  };
  for (int64_t sample = 0; sample < samples; ++sample) {
    const auto at = [&](int64_t v, int64_t d) {
      return s.bottom && v == 0 ? sample * s.dim + d
                                : sample * stride + (v - (s.bottom ? 1 : 0)) * s.dim + d;
    };
    const auto value = [&](int64_t v, int64_t d) {
      return (s.bottom && v == 0 ? bottom : rows)[at(v, d)];
    };
    const auto output = [&](int64_t i, int64_t j) {
      return sample * s.outputs() + s.copied() + std::max(i, j) * (std::max(i, j) - 1) / 2 +
             std::min(i, j);
    };
    for (int64_t d = 0; d < s.copied(); ++d) result.out[sample * s.outputs() + d] = value(0, d);
    for (int64_t i = 0; i < s.vectors(); ++i) {
      for (int64_t j = 0; j < i; ++j) {
        float dot = 0;
        for (int64_t d = 0; d < s.dim; ++d) dot = add(dot, value(i, d), value(j, d));
        result.out[output(i, j)] = dot;
      }
      for (int64_t d = 0; d < s.dim; ++d) {
        float sum = s.bottom && i == 0 ? dout[sample * s.outputs() + d] : 0;
        for (int64_t j = 0; j < s.vectors(); ++j) {
          if (j != i) sum = add(sum, dout[output(i, j)], value(j, d));
        }
        (s.bottom && i == 0 ? result.bottom_gradient : result.row_gradient)[at(i, d)] = sum;
      }
    }
  }
  return result;
}

TEST(Interaction, has_the_bits_of_the_plain_folds_on_every_target) {
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    for (const InteractionSpec& s : specs()) {
      if (s.precision != Precision::float32) continue;
      SCOPED_TRACE(testing::Message() << hwy::TargetName(target) << ", " << s.features
                                      << " features of " << s.dim << ", seed " << kSeed);
      const auto actual = run(s, 21, 21, false), expected = folded(s, 21, target <= HWY_AVX2);
      EXPECT_EQ(actual.out, expected.out);
      EXPECT_EQ(actual.row_gradient, expected.row_gradient);
      EXPECT_EQ(actual.bottom_gradient, expected.bottom_gradient);
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST(Interaction, computes_each_sample_alone) {
  for (const InteractionSpec& s : specs()) {
    const auto together = run(s, 21, 21, false), alone = run(s, 21, 1, false);
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
