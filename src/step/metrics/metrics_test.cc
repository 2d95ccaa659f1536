// SPDX-License-Identifier: Apache-2.0
#include "step/metrics/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "step/metrics/sample_window.h"
#include "step/metrics/testing/metric_cases.h"

namespace recmill::train::metrics {
namespace {

constexpr uint64_t kSeed = 3;

struct Drawn {
  std::vector<double> logits;
  std::vector<float> labels, weights;
  std::vector<uint64_t> groups;
  ScoredSamples view(bool weighted, bool grouped) const {
    return {logits, labels, weighted ? std::span<const float>(weights) : std::span<const float>(),
            grouped ? std::span<const uint64_t>(groups) : std::span<const uint64_t>()};
  }
};

// Few distinct scores, so that ties are common.
Drawn draw(int64_t count) {
  const Random random(kSeed, Purpose::test, static_cast<uint64_t>(count));
  Drawn drawn;
  for (int64_t i = 0; i < count; ++i) {
    const double probability = static_cast<double>(random.below(20, i, 0) + 1) / 22.0;
    drawn.logits.push_back(logit_of(probability));
    drawn.labels.push_back(random.uniform(i, 4) < probability ? 1.0f : 0.0f);
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
      if (s.logits[i] > s.logits[j]) won += w;
      if (s.logits[i] == s.logits[j]) won += 0.5 * w;
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
  EXPECT_FALSE(auc({std::vector<double>{0.1, 0.2}, std::vector<float>{1, 1}, {}, {}}).has_value());
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
  const std::vector<double> logits(4, logit_of(0.25));
  const std::vector<float> labels{1, 0, 0, 0};
  const Metrics metrics = measure({logits, labels, {}, {}});
  EXPECT_NEAR(*metrics.normalized_entropy, 1.0, 1e-12);
  EXPECT_NEAR(*metrics.log_loss, -(0.25 * std::log(0.25) + 0.75 * std::log(0.75)), 1e-12);
  EXPECT_NEAR(*metrics.calibration, 1.0, 1e-12);
  EXPECT_EQ(*metrics.auc, 0.5);
  EXPECT_EQ(metrics.accuracy, 0.75);
  EXPECT_FALSE(metrics.gauc.has_value());
}

// Where probabilities, in float32 or in float64, are 0 and 1.
TEST(Measure, ranks_and_adds_at_any_logit) {
  for (const auto& logits : {std::vector<double>{-90, -80, -70, -60},
                             {15, 30, 60, 100},
                             {-1e300, -1e-300, 1e-300, 1e300}}) {
    const std::vector<float> labels{0, 0, 1, 1}, turned{1, 1, 0, 0};
    const std::vector<uint64_t> groups{1, 1, 1, 1};
    const Metrics metrics = measure({logits, labels, {}, groups});
    EXPECT_EQ(metrics.auc, 1.0);
    EXPECT_EQ(metrics.gauc, 1.0);
    EXPECT_EQ(auc({logits, turned, {}, {}}), 0.0);
  }
}

TEST(Measure, has_the_exact_log_loss_of_a_certain_prediction) {
  const auto log_loss = [](double logit, float label) {
    const std::vector<double> logits{logit};
    const std::vector<float> labels{label};
    return *measure({logits, labels, {}, {}}).log_loss;
  };
  for (const double sign : {1.0, -1.0}) {
    const float right = sign > 0 ? 1.0f : 0.0f;
    EXPECT_EQ(log_loss(sign * 60, right), std::exp(-60.0));
    EXPECT_EQ(log_loss(sign * 60, 1 - right), 60.0);
    EXPECT_EQ(log_loss(sign * 800, right), 0.0);
    EXPECT_EQ(log_loss(sign * 800, 1 - right), 800.0);
    EXPECT_EQ(log_loss(sign * 1e30, 1 - right), 1e30);
    EXPECT_DOUBLE_EQ(log_loss(sign * 40, 0.5f), 20.0);
  }
  EXPECT_DOUBLE_EQ(log_loss(0.0, 1), std::log(2.0));
  // A click in two: what is said of the pair, over ln 2.
  const std::vector<double> logits{90.0, -90.0};
  const std::vector<float> labels{0, 1};
  EXPECT_DOUBLE_EQ(*measure({logits, labels, {}, {}}).normalized_entropy, 90.0 / std::log(2.0));
}

TEST(Measure, adds_probabilities_in_float64) {
  const std::vector<double> logits{-60.0, -60.0, 1e-9, -1e-9};
  const std::vector<float> labels{0, 1, 1, 0}, weights{1, 1, 0, 0};
  const Metrics metrics = measure({logits, labels, weights, {}});
  EXPECT_DOUBLE_EQ(*metrics.calibration, 2 * std::exp(-60.0));
  EXPECT_EQ(measure({logits, labels, {}, {}}).accuracy, 0.75);
}

TEST(Measure, has_an_entropy_to_compare_with_however_rare_a_class_is) {
  const std::vector<double> logits{1, 1, 1};
  const std::vector<float> labels{1, 0, 1}, weights{1, 1e-30f, 1};
  const Metrics metrics = measure({logits, labels, weights, {}});
  EXPECT_EQ(metrics.click_rate, 1.0);
  const double share = double{1e-30f} / 2;
  EXPECT_NEAR(*metrics.normalized_entropy, *metrics.log_loss / (share - share * std::log(share)),
              1e-3);
  EXPECT_EQ(metrics.auc, 0.5);
}

// The definitions, from labels, probabilities and pairs, in long double.
struct Defined {
  std::optional<long double> log_loss, auc, normalized_entropy, calibration, accuracy;
};
Defined by_definition(const ScoredSamples& s) {
  long double weight = 0, clicks = 0, loss = 0, predicted = 0, right = 0, pairs = 0, won = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    const long double w = s.weight(i), click = 1 / (1 + std::exp(-(long double){s.logits[i]}));
    const long double none = 1 / (1 + std::exp((long double){s.logits[i]}));
    const bool clicked = s.labels[i] == 1;
    // Below the least long double a probability is its exponential, whose logarithm is the logit.
    const long double told = clicked ? click : none;
    loss += w * (told > 0x1p-16000l
                     ? (told < 0.5l ? -std::log(told) : -std::log1p(-(clicked ? none : click)))
                     : std::fabs((long double){s.logits[i]}));
    weight += w;
    clicks += clicked ? w : 0;
    predicted += w * click;
    right += (s.logits[i] > 0) == clicked ? w : 0;
    for (size_t j = 0; j < s.size(); ++j) {
      if (!clicked || s.labels[j] == 1) continue;
      const long double pair = w * s.weight(j);
      pairs += pair;
      won += s.logits[i] > s.logits[j] ? pair : s.logits[i] == s.logits[j] ? pair / 2 : 0;
    }
  }
  Defined defined;
  if (weight > 0) defined.log_loss = loss / weight, defined.accuracy = right / weight;
  if (pairs > 0) defined.auc = won / pairs;
  const long double rate = clicks / weight;
  if (pairs > 0)
    defined.normalized_entropy =
        loss / weight / -(rate * std::log(rate) + (1 - rate) * std::log(1 - rate));
  if (clicks > 0) defined.calibration = predicted / clicks;
  return defined;
}

TEST(Measure, equals_the_definitions_in_cases_that_are_hard) {
  size_t undefined = 0;
  for (uint64_t number = 0; number < kMetricCases; ++number) {
    const MetricCase drawn = metric_case(number);
    const Metrics found = measure(drawn.view());
    const Defined expected = by_definition(drawn.view());
    const auto expect_same = [&](const char* name, const std::optional<double>& a,
                                 const std::optional<long double>& b) {
      ASSERT_EQ(a.has_value(), b.has_value()) << name << " of case " << number;
      undefined += !a;
      if (a) {
        ASSERT_LE(std::fabs(*a - *b), 1e-12l * std::max(1.0l, *b)) << name << " of case " << number;
      }
    };
    expect_same("log loss", found.log_loss, expected.log_loss);
    expect_same("AUC", found.auc, expected.auc);
    expect_same("normalised entropy", found.normalized_entropy, expected.normalized_entropy);
    expect_same("calibration", found.calibration, expected.calibration);
    expect_same("accuracy", found.accuracy, expected.accuracy);
  }
  EXPECT_GT(undefined, kMetricCases / 10);
}

TEST(Probability, and_logit_are_each_others_inverse) {
  for (const double logit : {-36.0, -5.0, -1e-3, 0.0, 0.25, 12.0})
    EXPECT_NEAR(logit_of(probability_of(logit)), logit, 1e-10 * std::max(1.0, std::fabs(logit)));
  EXPECT_EQ(probability_of(-1000), 0.0);
  EXPECT_EQ(probability_of(1000), 1.0);
  EXPECT_EQ(probability_of(-60), std::exp(-60.0) / (1 + std::exp(-60.0)));
  const double most = 53 * std::log(2.0);
  EXPECT_NEAR(logit_of(0), -most, 1e-12);
  EXPECT_NEAR(logit_of(1), most, 1e-12);
}

TEST(SampleWindow, goes_on_from_its_contents_as_if_it_had_never_stopped) {
  const std::vector<double> logits{0.1, 0.7, 0.4, 0.6, 0.3};
  const std::vector<float> labels{0, 1, 0, 0, 1};
  SampleWindow window(4), restored(4), smaller(2);
  window.add({logits, labels, {}, {}});
  restored.restore(window.contents());
  smaller.restore(window.contents());
  EXPECT_EQ(restored.contents(), window.contents());
  EXPECT_EQ(restored.total(), 5);
  EXPECT_EQ(smaller.contents().logits, (std::vector<double>{0.6, 0.3}));
  window.add({logits, labels, {}, {}});
  restored.add({logits, labels, {}, {}});
  EXPECT_EQ(restored.contents(), window.contents());
}

TEST(SampleWindow, holds_the_newest_samples_whatever_the_batches) {
  const Drawn drawn = draw(100);
  const auto all = drawn.view(true, true);
  for (const size_t batch : {1u, 7u, 64u, 100u}) {
    SampleWindow window(30);
    for (size_t first = 0; first < 100; first += batch) {
      const size_t count = std::min<size_t>(batch, 100 - first);
      window.add({all.logits.subspan(first, count), all.labels.subspan(first, count),
                  all.weights.subspan(first, count), all.groups.subspan(first, count)});
    }
    const Metrics expected = measure({all.logits.subspan(70), all.labels.subspan(70),
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
  EXPECT_NEAR(calibrated(logit_of(1 / 1.9), 0.1), logit_of(0.1), 1e-12);
  EXPECT_EQ(calibrated(0.3, 1.0), 0.3);
  EXPECT_LT(calibrated(79.0, 0.1), calibrated(80.0, 0.1));
}

}  // namespace recmill::train::metrics
