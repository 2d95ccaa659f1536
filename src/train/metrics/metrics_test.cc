// SPDX-License-Identifier: Apache-2.0
#include "train/metrics/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "train/metrics/sample_window.h"

namespace recmill::train::metrics {
namespace {

constexpr uint64_t kSeed = 3;

struct Drawn {
  std::vector<float> probabilities, labels, weights;
  std::vector<uint64_t> groups;
  ScoredSamples view(bool weighted, bool grouped) const {
    return {probabilities, labels,
            weighted ? std::span<const float>(weights) : std::span<const float>(),
            grouped ? std::span<const uint64_t>(groups) : std::span<const uint64_t>()};
  }
};

// Few distinct scores, so that ties are common.
Drawn draw(int64_t count) {
  const Random random(kSeed, Purpose::test, static_cast<uint64_t>(count));
  Drawn drawn;
  for (int64_t i = 0; i < count; ++i) {
    drawn.probabilities.push_back(static_cast<float>(random.below(20, i, 0) + 1) / 22.0f);
    drawn.labels.push_back(random.uniform(i, 4) < drawn.probabilities.back() ? 1.0f : 0.0f);
    drawn.weights.push_back(0.25f + random.uniform(i, 8));
    drawn.groups.push_back(random.below(7, i, 3));
  }
  return drawn;
}

// The definition: over all pairs.
std::optional<double> auc_by_pairs(const ScoredSamples& s, std::optional<uint64_t> group) {
  double won = 0, pairs = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    for (size_t j = 0; j < s.size(); ++j) {
      if (s.labels[i] < 0.5f || s.labels[j] > 0.5f) continue;
      if (group && (s.groups[i] != *group || s.groups[j] != *group)) continue;
      const double w = double{s.weight(i)} * s.weight(j);
      pairs += w;
      if (s.probabilities[i] > s.probabilities[j]) won += w;
      if (s.probabilities[i] == s.probabilities[j]) won += 0.5 * w;
    }
  }
  if (pairs == 0) return std::nullopt;
  return won / pairs;
}

}  // namespace

TEST(Auc, equals_its_definition_over_pairs) {
  for (const int64_t count : {2, 3, 10, 300}) {
    const Drawn drawn = draw(count);
    for (const bool weighted : {false, true}) {
      const auto samples = drawn.view(weighted, false);
      const auto expected = auc_by_pairs(samples, std::nullopt);
      const auto value = auc(samples);
      ASSERT_EQ(value.has_value(), expected.has_value());
      EXPECT_NEAR(value.value_or(0), expected.value_or(0), 1e-12)
          << "seed " << kSeed << " count " << count;
    }
  }
}

TEST(Auc, needs_both_classes) {
  EXPECT_FALSE(auc({std::vector<float>{0.1f, 0.2f}, std::vector<float>{1, 1}, {}, {}}).has_value());
  EXPECT_FALSE(auc({}).has_value());
}

TEST(Gauc, averages_groups_by_weight_and_leaves_out_those_of_one_class) {
  const Drawn drawn = draw(200);
  const auto samples = drawn.view(true, true);
  double sum = 0, weight = 0;
  int64_t groups = 0;
  for (uint64_t g = 0; g < 7; ++g) {
    const auto value = auc_by_pairs(samples, g);
    if (!value) continue;
    double w = 0;
    for (size_t i = 0; i < samples.size(); ++i) w += samples.groups[i] == g ? samples.weight(i) : 0;
    sum += w * *value;
    weight += w;
    ++groups;
  }
  const GroupedAuc result = gauc(samples);
  EXPECT_EQ(result.groups, groups);
  EXPECT_NEAR(*result.value, sum / weight, 1e-12) << "seed " << kSeed;
}

TEST(Measure, of_a_constant_prediction_at_the_click_rate_is_one_normalised_entropy) {
  const std::vector<float> probabilities(4, 0.25f), labels{1, 0, 0, 0};
  const Metrics metrics = measure({probabilities, labels, {}, {}});
  EXPECT_NEAR(*metrics.normalized_entropy, 1.0, 1e-12);
  EXPECT_NEAR(metrics.log_loss, -(0.25 * std::log(0.25) + 0.75 * std::log(0.75)), 1e-12);
  EXPECT_NEAR(*metrics.calibration, 1.0, 1e-12);
  EXPECT_EQ(*metrics.auc, 0.5);
  EXPECT_EQ(metrics.accuracy, 0.75);
  EXPECT_FALSE(metrics.gauc.has_value());
}

TEST(Measure, stays_finite_when_a_prediction_is_certain_and_wrong) {
  const std::vector<float> probabilities{0.0f, 1.0f}, labels{1, 0};
  EXPECT_TRUE(std::isfinite(measure({probabilities, labels, {}, {}}).log_loss));
}

TEST(SampleWindow, goes_on_from_its_contents_as_if_it_had_never_stopped) {
  const std::vector<float> probabilities{0.1f, 0.7f, 0.4f, 0.6f, 0.3f}, labels{0, 1, 0, 0, 1};
  SampleWindow window(4), restored(4), smaller(2);
  window.add({probabilities, labels, {}, {}});
  restored.restore(window.contents());
  smaller.restore(window.contents());
  EXPECT_EQ(restored.contents(), window.contents());
  EXPECT_EQ(restored.total(), 5);
  EXPECT_EQ(smaller.contents().probabilities, (std::vector<float>{0.6f, 0.3f}));
  window.add({probabilities, labels, {}, {}});
  restored.add({probabilities, labels, {}, {}});
  EXPECT_EQ(restored.contents(), window.contents());
}

TEST(SampleWindow, holds_the_newest_samples_whatever_the_batches) {
  const Drawn drawn = draw(100);
  const auto all = drawn.view(true, true);
  for (const size_t batch : {1u, 7u, 64u, 100u}) {
    SampleWindow window(30);
    for (size_t first = 0; first < 100; first += batch) {
      const size_t count = std::min<size_t>(batch, 100 - first);
      window.add({all.probabilities.subspan(first, count), all.labels.subspan(first, count),
                  all.weights.subspan(first, count), all.groups.subspan(first, count)});
    }
    const Metrics expected = measure({all.probabilities.subspan(70), all.labels.subspan(70),
                                      all.weights.subspan(70), all.groups.subspan(70)});
    const Metrics metrics = window.metrics();
    EXPECT_EQ(metrics.log_loss, expected.log_loss);
    EXPECT_EQ(metrics.auc, expected.auc);
    EXPECT_EQ(metrics.gauc, expected.gauc);
    EXPECT_EQ(window.total(), 100);
  }
}

TEST(Calibrated, undoes_the_sampling_of_negatives) {
  // One positive in ten; training keeps a tenth of the negatives: 1 in 1.9.
  EXPECT_NEAR(calibrated(1.0f / 1.9f, 0.1), 0.1, 1e-7);
  EXPECT_EQ(calibrated(0.3f, 1.0), 0.3f);
}

TEST(ValueOf, knows_every_name_and_refuses_others) {
  const Drawn drawn = draw(50);
  const Metrics metrics = measure(drawn.view(false, true));
  EXPECT_EQ(*value_of(metrics, "auc"), *metrics.auc);
  const auto wrong = value_of(metrics, "aux");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.status().code(), Status::Code::bad_request);
}

}  // namespace recmill::train::metrics
