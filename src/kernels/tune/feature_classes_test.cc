// SPDX-License-Identifier: Apache-2.0
#include "kernels/tune/feature_classes.h"

#include <gtest/gtest.h>

#include <cmath>

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

TEST(BagStats, of_one_lookup_each_are_far_from_any_others) {
  const BagStats one_each, few_empty{0.999, 0.0316, 0.001, 1}, few_double{1.001, 0.0316, 0.0, 2},
      some_empty{0.98, 0.14, 0.02, 1}, some_double{1.02, 0.14, 0.0, 2};
  EXPECT_EQ(distance(one_each, one_each), 0.0);
  for (const BagStats& others : {few_empty, few_double, some_empty, some_double})
    EXPECT_EQ(distance(one_each, others), 1.0);
  EXPECT_EQ(distance(one_each, {2.0, 4.0, 0.0, 100}), 2.0);
  // In few batches.
  EXPECT_LT(distance(one_each, {0.9999, 0.01, 0.0001, 1}), 0.1);
  // That rare ones are not there for once says little.
  for (const BagStats& others : {few_empty, few_double}) EXPECT_LT(distance(others, one_each), 0.1);
  for (const BagStats& others : {some_empty, some_double})
    EXPECT_EQ(distance(others, one_each), 1.0);
}

}  // namespace
}  // namespace recmill::kernels::tune
