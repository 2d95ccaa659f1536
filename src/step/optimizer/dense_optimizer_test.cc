// SPDX-License-Identifier: Apache-2.0
#include "step/optimizer/dense_optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/random.h"

namespace recmill::train {
namespace {

constexpr uint64_t kSeed = 5;

std::vector<float> draw(int64_t count, uint64_t stream) {
  const Random random(kSeed, Purpose::test, stream);
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = 2 * random.uniform(i) - 1;
  return values;
}

DenseOptimizerOptions options_of(DenseOptimizerKind kind) {
  DenseOptimizerOptions options;
  options.kind = kind;
  options.learning_rate = 0.1;
  options.weight_decay = 0.01;
  return options;
}

// The formulas of the header in float64, over iterations of gradients draw(n, 100 + t).
std::vector<double> reference(const DenseOptimizerOptions& o, int64_t n, int iterations) {
  const auto start = draw(n, 1);
  std::vector<double> w(start.begin(), start.end()), m(n), v(n);
  for (double& sum : m) sum = o.kind == DenseOptimizerKind::adagrad ? o.initial_accumulator : 0;
  for (int t = 0; t < iterations; ++t) {
    const auto gradient = draw(n, 100 + t);
    double norm = 0;
    for (const float g : gradient) norm += double{g} * g;
    norm = std::sqrt(norm);
    const double clip = o.clip_norm > 0 && norm > o.clip_norm ? o.clip_norm / norm : 1;
    for (int64_t i = 0; i < n; ++i) {
      const double g = clip * gradient[i] + o.weight_decay * w[i];
      if (o.kind == DenseOptimizerKind::sgd) {
        m[i] = o.momentum * m[i] + g;
        w[i] -= o.learning_rate * m[i];
      } else if (o.kind == DenseOptimizerKind::adagrad) {
        m[i] += g * g;
        w[i] -= o.learning_rate * g / (std::sqrt(m[i]) + o.epsilon);
      } else {
        m[i] = o.beta1 * m[i] + (1 - o.beta1) * g;
        v[i] = o.beta2 * v[i] + (1 - o.beta2) * g * g;
        w[i] -= o.learning_rate * (m[i] / (1 - std::pow(o.beta1, t + 1))) /
                (std::sqrt(v[i] / (1 - std::pow(o.beta2, t + 1))) + o.epsilon);
      }
    }
  }
  return w;
}

std::vector<float> train(const DenseOptimizerOptions& options, int64_t n, int iterations,
                         int threads) {
  ThreadPool pool(threads);
  std::vector<float> w = draw(n, 1);
  DenseOptimizer optimizer(options, n, {{0, n}});
  for (int t = 0; t < iterations; ++t) optimizer.step(t, 1.0, draw(n, 100 + t), w, pool);
  return w;
}

}  // namespace

TEST(DenseOptimizer, follows_its_formula_and_is_the_same_at_any_number_of_threads) {
  std::vector<DenseOptimizerOptions> all{options_of(DenseOptimizerKind::sgd),
                                         options_of(DenseOptimizerKind::adagrad),
                                         options_of(DenseOptimizerKind::adam)};
  all.push_back(all[0]);
  all.back().momentum = 0.9;
  all.push_back(all[0]);
  all.back().clip_norm = 0.5;
  all.push_back(all[1]);
  all.back().initial_accumulator = 0.1;
  for (const auto& options : all) {
    for (const int64_t n : {int64_t{1}, int64_t{17}, int64_t{200003}}) {
      const auto expected = reference(options, n, 5);
      const auto one = train(options, n, 5, 1);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_NEAR(one[i], expected[i], 2e-5)
            << name_of(options.kind) << " element " << i << " seed " << kSeed;
      }
      ASSERT_EQ(one, train(options, n, 5, 3));
    }
  }
}

TEST(DenseOptimizer, at_learning_rate_0_weights_keep_their_bits_and_state_takes_the_gradient) {
  ThreadPool pool(1);
  for (const auto kind :
       {DenseOptimizerKind::sgd, DenseOptimizerKind::adagrad, DenseOptimizerKind::adam}) {
    for (const double momentum : {0.0, 0.9}) {
      DenseOptimizerOptions options = options_of(kind);
      options.momentum = momentum;
      options.epsilon = 0.0;  // a gradient of 0 is a step of 0 / 0
      DenseOptimizer stays(options, 100, {{0, 100}}), moves(options, 100, {{0, 100}});
      std::vector<float> weights = draw(100, 1), gradient = draw(100, 2);
      std::fill_n(weights.begin(), 20, -0.0f);
      std::fill_n(gradient.begin(), 10, 0.0f);
      if (kind == DenseOptimizerKind::sgd) gradient[30] = 3e38f;
      const std::vector<float> before = weights;
      stays.step(0, 0.0, gradient, weights, pool);
      EXPECT_EQ(std::memcmp(weights.data(), before.data(), 400), 0) << name_of(kind);
      moves.step(0, 1.0, gradient, weights, pool);
      for (size_t s = 0; s < moves.state().size(); ++s)
        EXPECT_EQ(stays.state()[s].values, moves.state()[s].values) << name_of(kind);
    }
  }
}

TEST(DenseOptimizer, gives_the_same_bits_in_pieces) {
  ThreadPool pool(2);
  constexpr int64_t kCount = 1000;
  for (const auto kind :
       {DenseOptimizerKind::sgd, DenseOptimizerKind::adagrad, DenseOptimizerKind::adam}) {
    DenseOptimizerOptions options = options_of(kind);
    options.clip_norm = 0.5;
    const std::vector<ParameterRange> trained{{3, 400}, {403, 20}, {500, 499}};
    DenseOptimizer whole(options, kCount, trained), pieces(options, kCount, trained);
    std::vector<float> expected = draw(kCount, 1), actual = expected;
    for (int t = 0; t < 3; ++t) {
      const auto gradient = draw(kCount, 100 + t);
      whole.step(t, 0.7, gradient, expected, pool);
      pieces.begin(t, 0.7, gradient, pool);
      for (int64_t end = kCount, size = 1; end > 0; size += 7) {
        const int64_t begin = std::max<int64_t>(0, end - size);
        pieces.apply(begin, std::span(gradient).subspan(begin, end - begin), actual);
        end = begin;
      }
    }
    EXPECT_EQ(actual, expected) << name_of(kind);
  }
}

TEST(DenseOptimizer, leaves_what_is_not_trained) {
  ThreadPool pool(2);
  std::vector<float> w(10, 1.0f);
  DenseOptimizer optimizer(options_of(DenseOptimizerKind::adam), 10, {{0, 3}, {7, 2}});
  optimizer.step(0, 1.0, std::vector<float>(10, 1.0f), w, pool);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(w[i] != 1.0f, i < 3 || i == 7 || i == 8) << i;
  }
}

}  // namespace recmill::train
