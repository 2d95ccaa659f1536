// SPDX-License-Identifier: Apache-2.0
#include "kernels/tune/feature_classes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/random.h"
#include "kernels/tune/drift.h"

namespace recmill::kernels::tune {
namespace {

FeatureShape shape(int64_t rows, int64_t dim, double mean) {
  FeatureShape made;
  made.rows = rows;
  made.dim = dim;
  made.bags = {mean, 5.0, 0.1, 40};
  return made;
}

TEST(FeatureClasses, hold_features_that_are_alike_and_no_others) {
  const std::vector<FeatureShape> shapes{shape(100, 8, 20.0), shape(100, 16, 20.0),
                                         shape(100, 8, 19.5), shape(200, 8, 20.0),
                                         shape(100, 8, 60.0), shape(100, 16, 19.9)};
  const auto classes = group_features(shapes);
  ASSERT_EQ(classes.size(), 4u);
  EXPECT_EQ(classes[0].features, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(classes[1].features, (std::vector<int64_t>{1, 5}));
  EXPECT_EQ(classes[2].features, (std::vector<int64_t>{3}));
  EXPECT_EQ(classes[3].features, (std::vector<int64_t>{4}));
  EXPECT_EQ(classes[0].shape, shapes[0]);
}

TEST(FeatureClasses, split_by_everything_that_a_kernel_sees) {
  const FeatureShape one = shape(100, 8, 20.0);
  std::vector<FeatureShape> shapes(7, one);
  shapes[1].precision = RowPrecision::bfloat16;
  shapes[2].pooling = Pooling::mean;
  shapes[3].weighted = true;
  shapes[4].bags.empty_share = 0.5;
  shapes[5].bags.longest = 1000;
  shapes[6].bags.deviation = 50.0;
  EXPECT_EQ(group_features(shapes).size(), shapes.size());
  EXPECT_TRUE(group_features({}).empty());
}

TEST(BagCounter, counts_over_batches) {
  const std::vector<int64_t> first{0, 0, 4}, second{10, 12};
  BagCounter counter;
  EXPECT_TRUE(counter.stats().one_each());
  counter.add({first.data(), nullptr, nullptr, 2, false});
  counter.add({second.data(), nullptr, nullptr, 1, false});
  counter.add({});
  const BagStats stats = counter.stats();
  EXPECT_DOUBLE_EQ(stats.mean, 2.0);
  EXPECT_DOUBLE_EQ(stats.deviation, std::sqrt(8.0 / 3.0));
  EXPECT_DOUBLE_EQ(stats.empty_share, 1.0 / 3.0);
  EXPECT_EQ(stats.longest, 4);
}

TEST(BagStats, are_as_far_apart_as_what_changed_most) {
  const BagStats tuned{20.0, 5.0, 0.1, 40};
  EXPECT_EQ(distance(tuned, tuned), 0.0);
  EXPECT_DOUBLE_EQ(distance(tuned, {40.0, 5.0, 0.1, 40}), 0.5);
  EXPECT_DOUBLE_EQ(distance(tuned, {20.0, 5.0, 0.9, 40}), 0.8);
  EXPECT_DOUBLE_EQ(distance(tuned, {20.0, 15.0, 0.1, 40}), 0.5);
  EXPECT_EQ(distance({0.0, 0.0, 1.0, 0}, {0.0, 0.0, 1.0, 0}), 0.0);
  EXPECT_EQ(distance({0.01, 0.1, 0.99, 1}, {0.02, 0.1, 0.99, 1}), 0.0);
}

TEST(BagStats, of_features_of_one_class_are_at_most_a_fifth_apart) {
  const auto alike = [](const BagStats& a, const BagStats& b) {
    std::vector<FeatureShape> shapes(2, shape(100, 8, 1.0));
    shapes[0].bags = a;
    shapes[1].bags = b;
    return group_features(shapes).size() == 1;
  };
  // Few samples have very many lookups.
  const BagStats rare{1.0, 4.3, 0.9, 60}, as_rare{1.0, 5.3, 0.9, 60};
  EXPECT_TRUE(alike(rare, as_rare));
  EXPECT_DOUBLE_EQ(distance(rare, as_rare), 1.0 / 5.3);
  const Random random(5, Purpose::test);
  int pairs = 0;
  for (uint64_t i = 0; i < 20'000; ++i) {
    const auto size = [&](uint64_t element) {
      return std::exp(8.0 * random.uniform(i, element) - 4.0);
    };
    const auto near = [&](double to, uint64_t element) {
      return to * (0.85 + 0.3 * random.uniform(i, element));
    };
    const BagStats a{size(0), size(1), 0.5, 60};
    const BagStats b{near(a.mean, 2), near(a.deviation, 3), near(0.5, 4), 60};
    if (!alike(a, b)) continue;
    ++pairs;
    EXPECT_LE(distance(a, b), 0.2 + 1e-12)
        << a.mean << " " << a.deviation << ", " << b.mean << " " << b.deviation;
  }
  EXPECT_GT(pairs, 1'000);
}

// A tenth of the samples have bags, which go on after each lookup nine times of ten.
TEST(BagStats, of_a_window_are_near_those_of_all_samples_though_bags_are_rare) {
  const Random random(6, Purpose::test);
  const auto stats_of = [&](int64_t first, int64_t samples) {
    std::vector<int64_t> offsets{0};
    for (int64_t i = first; i < first + samples; ++i) {
      const auto item = static_cast<uint64_t>(i);
      int64_t length = 0;
      if (random.uniform(item) < 0.1f)
        length = 1 + static_cast<int64_t>(std::log(1.0 - random.uniform(item, 1)) / std::log(0.9));
      offsets.push_back(offsets.back() + length);
    }
    BagCounter counter;
    counter.add({offsets.data(), nullptr, nullptr, samples, false});
    return counter.stats();
  };
  const BagStats tuned = stats_of(0, 8 * DriftWatch::kWindowSamples);
  EXPECT_GT(tuned.deviation, 2.0 * tuned.mean);
  for (int64_t window = 0; window < 500; ++window) {
    const auto now =
        stats_of((8 + window) * DriftWatch::kWindowSamples, DriftWatch::kWindowSamples);
    EXPECT_LT(distance(tuned, now), kDriftDistance) << window;
  }
}

TEST(BagStats, of_one_lookup_each_are_far_from_any_others) {
  const BagStats one_each, few_empty{0.999, 0.0316, 0.001, 1}, few_double{1.001, 0.0316, 0.0, 2},
      some_empty{0.98, 0.14, 0.02, 1}, some_double{1.02, 0.14, 0.0, 2};
  EXPECT_EQ(distance(one_each, one_each), 0.0);
  for (const BagStats& others : {few_empty, few_double, some_empty, some_double})
    EXPECT_EQ(distance(one_each, others), 1.0);
  EXPECT_EQ(distance(one_each, {2.0, 4.0, 0.0, 100}), 1.0);
  // In few batches.
  EXPECT_LT(distance(one_each, {0.9999, 0.01, 0.0001, 1}), 0.1);
  // That rare ones are not there for once says little.
  for (const BagStats& others : {few_empty, few_double}) EXPECT_LT(distance(others, one_each), 0.1);
  for (const BagStats& others : {some_empty, some_double})
    EXPECT_EQ(distance(others, one_each), 1.0);
}

}  // namespace
}  // namespace recmill::kernels::tune
