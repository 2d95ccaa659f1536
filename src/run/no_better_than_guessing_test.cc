// SPDX-License-Identifier: Apache-2.0
#include "run/no_better_than_guessing.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace recmill::train {
namespace {

/// Samples, half of them clicks, whose logits are `older` in the first half and `newer` in the
/// second, upwards for a click.
metrics::WindowContents window_of(double older, double newer) {
  metrics::WindowContents window;
  for (int i = 0; i < 400; ++i) {
    const bool click = i % 2 == 0;
    window.labels.push_back(click ? 1.0f : 0.0f);
    window.logits.push_back((click ? 1 : -1) * (i < 200 ? older : newer));
  }
  return window;
}

metrics::Metrics measured(double logit) {
  const metrics::WindowContents rows = window_of(logit, logit);
  return metrics::measure({rows.logits, rows.labels, {}, {}});
}

std::string line(double evaluated, double older, double newer, int64_t iterations,
                 int64_t epochs = 1) {
  RunOptions options;
  options.train.epochs = epochs;
  return no_better_than_guessing(measured(evaluated), options, iterations, window_of(older, newer));
}

void expect_says(const std::string& text, const std::vector<std::string>& parts) {
  EXPECT_EQ(std::ranges::count(text, '\n'), 0) << text;
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << text;
}

}  // namespace

TEST(NoBetterThanGuessing, says_nothing_of_a_model_that_is_better) {
  EXPECT_EQ(line(0.5, 0.1, 0.5, 2), "");
  EXPECT_EQ(line(0.5, 0.5, -3.0, 2), "") << "evaluation judges, whatever training looks like";
}

TEST(NoBetterThanGuessing, says_how_bad_it_is_and_what_is_likely_to_be_the_reason) {
  expect_says(line(-0.5, 0.1, 0.1, 15),
              {"normalised entropy 1.405, AUC 0 (always predicting the click rate, 0.5, has 1 and",
               "few steps (15): lower train.batch_size (2048) or raise train.epochs (1)"});
  expect_says(line(-0.5, 0.1, -2.0, 5000),
              {"the training loss rose from 0.6444 to 2.127: lower optimizer.learning_rate ("});
  expect_says(line(-0.5, -2.0, -2.0, 5000),
              {"training rows are predicted no better (normalised entropy 3.069, AUC 0): change "});
  const std::string leak = line(-0.5, 3.0, 3.0, 5000), epochs = line(-0.5, 3.0, 3.0, 5000, 8);
  expect_says(leak, {"far better (normalised entropy 0.0701, AUC 1)", "a leak"});
  expect_says(epochs, {"a leak", "too many train.epochs"});
  EXPECT_EQ(leak.find("train.epochs"), std::string::npos) << leak;
  metrics::WindowContents shifted = window_of(2.0, 2.0);  // ranked well, and far from the labels
  for (double& logit : shifted.logits) logit += 9.0;
  const std::string worse = no_better_than_guessing(measured(-0.5), {}, 5000, shifted);
  expect_says(worse, {"training rows are predicted no better"});
  EXPECT_EQ(worse.find("far better"), std::string::npos) << worse;
  expect_says(no_better_than_guessing(measured(0.0), {}, 5000, {}),
              {"AUC 0.5 (", "tell little of the label"});
}

TEST(NoBetterThanGuessing, says_that_rows_of_one_class_tell_nothing) {
  const std::vector<double> logits(10, 0.3);
  const std::vector<float> labels(10, 1.0f);
  const auto text = no_better_than_guessing(metrics::measure({logits, labels, {}, {}}), {}, 15, {});
  expect_says(text, {"the 10 evaluated rows are of one class (click rate 1)"});
}

TEST(NoBetterThanGuessing, needs_no_training_samples) {
  expect_says(no_better_than_guessing(measured(-1), {}, 1, {}), {"few steps (1)"});
}

}  // namespace recmill::train
