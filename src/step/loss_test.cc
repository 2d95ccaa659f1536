// SPDX-License-Identifier: Apache-2.0
#include "step/loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "step/learning_rate.h"

namespace recmill::train {

TEST(LogLoss, equals_the_definition_and_its_difference_quotient) {
  const std::vector<float> logits{-3.f, -0.5f, 0.f, 0.25f, 4.f};
  const std::vector<float> labels{0.f, 1.f, 1.f, 0.f, 1.f};
  const std::vector<float> weights{1.f, 2.f, 1.f, 0.5f, 3.f};
  std::vector<float> gradient(5);
  const double sum = add_log_loss(0.0, logits, labels, weights, 10, gradient);
  double expected = 0;
  for (int i = 0; i < 5; ++i) {
    const double p = 1 / (1 + std::exp(-double{logits[i]}));
    expected -= weights[i] * (labels[i] * std::log(p) + (1 - labels[i]) * std::log(1 - p));
    std::vector<float> moved = logits;
    const float step = 1e-3f;
    moved[i] += step;
    const double up = add_log_loss(0.0, moved, labels, weights, 10, {});
    moved[i] = logits[i] - step;
    const double down = add_log_loss(0.0, moved, labels, weights, 10, {});
    EXPECT_NEAR(gradient[i], (up - down) / (2 * step) / 10, 1e-5);
  }
  EXPECT_NEAR(sum, expected, 1e-12);
}

TEST(LogLoss, stays_finite_at_extreme_logits) {
  const std::vector<float> logits{-1e4f, 1e4f};
  std::vector<float> gradient(2);
  EXPECT_EQ(add_log_loss(0.0, logits, std::vector<float>{0, 1}, {}, 1, gradient), 0.0);
  EXPECT_EQ(add_log_loss(0.0, logits, std::vector<float>{1, 0}, {}, 1, gradient), 2e4);
  EXPECT_EQ(gradient, (std::vector<float>{-1.f, 1.f}));
}

TEST(LearningRate, warms_up_then_decays) {
  const LearningRate rate{
      .warmup = {.iterations = 10, .start = 0.0},
      .decay = {.kind = DecayKind::linear, .start = 20, .iterations = 10, .end = 0.1}};
  EXPECT_DOUBLE_EQ(rate.scale(0), 0.1);
  EXPECT_DOUBLE_EQ(rate.scale(9), 1.0);
  EXPECT_DOUBLE_EQ(rate.scale(20), 1.0);
  EXPECT_DOUBLE_EQ(rate.scale(25), 0.55);
  EXPECT_DOUBLE_EQ(rate.scale(1000), 0.1);
  const LearningRate cosine{{}, {.kind = DecayKind::cosine, .start = 0, .iterations = 4}};
  EXPECT_NEAR(cosine.scale(2), 0.5, 1e-12);
}

TEST(LearningRate, a_decay_of_no_given_length_ends_with_the_run) {
  TrainOptions train;
  train.batch_size = 10;
  train.epochs = 2;
  train.decay = {.kind = DecayKind::linear, .start = 4};
  // 11 batches an epoch, the last of each shorter.
  EXPECT_EQ(learning_rate_of(train, 101).decay.iterations, 22 - 4);
  EXPECT_DOUBLE_EQ(learning_rate_of(train, 101).scale(21), 1.0 / 18);
  train.iterations = 12;
  EXPECT_EQ(learning_rate_of(train, 101).decay.iterations, 12 - 4);
  EXPECT_EQ(learning_rate_of(train, 20).decay.iterations, 1) << "training ends before it starts";
  train.decay.iterations = 7;
  EXPECT_EQ(learning_rate_of(train, 101).decay.iterations, 7);
}

}  // namespace recmill::train
