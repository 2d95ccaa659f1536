// SPDX-License-Identifier: Apache-2.0
#include "kernels/tune/drift.h"

#include <gtest/gtest.h>

#include "kernels/testing/random_bags.h"

namespace recmill::kernels::tune {
namespace {

FeatureShape shape_of(double mean) {
  FeatureShape shape;
  shape.rows = 1000;
  shape.dim = 8;
  shape.bags = {mean, mean / 2, 0.1, static_cast<int64_t>(4 * mean)};
  return shape;
}

FeatureClass alone(int64_t feature, double mean, const std::string& kind = "") {
  return {shape_of(mean), {feature}, kind};
}

TEST(Drift, names_what_is_farther_than_the_stated_distance_the_farthest_first) {
  const std::vector<FeatureClass> classes{{shape_of(10), {0, 2, 3}}, {shape_of(40), {1}}};
  const auto found = drifted(classes, std::vector<BagStats>{shape_of(11).bags, shape_of(8).bags,
                                                            shape_of(17).bags, shape_of(16).bags});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].feature, 1);
  EXPECT_DOUBLE_EQ(found[0].distance, 0.8);
  EXPECT_EQ(found[0].tuned, shape_of(40).bags);
  EXPECT_EQ(found[0].now, shape_of(8).bags);
  EXPECT_EQ(found[1].feature, 2);
}

SparseBatch batch_of(int64_t samples, int64_t longest, uint64_t seed) {
  SparseBatch batch;
  batch.samples = samples;
  for (int f = 0; f < 3; ++f)
    batch.features.push_back(random_bags({samples, f == 1 ? longest : 20, 1000}, seed + f));
  return batch;
}

std::vector<FeatureClass> classes_like(const SparseBatch& batch) {
  std::vector<FeatureClass> classes;
  for (int64_t f = 0; f < 3; ++f) {
    BagCounter counter;
    counter.add(batch.features[f].view(batch.samples));
    FeatureShape shape = shape_of(1);
    shape.bags = counter.stats();
    classes.push_back({shape, {f}});
  }
  return classes;
}

/// How many batches of `longest` the watch sees until it says something; 0: it never does.
int64_t batches_until_drift(DriftWatch& watch, int64_t samples, int64_t longest, int64_t most) {
  for (int64_t i = 1; i <= most; ++i) {
    const auto found = watch.see(batch_of(samples, longest, 100 + i % 5));
    if (found.empty()) continue;
    EXPECT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].feature, 1);
    return i;
  }
  return 0;
}

TEST(DriftWatch, sees_a_drift_at_the_end_of_its_first_window_and_says_so_once) {
  DriftWatch watch(classes_like(batch_of(4000, 20, 1)), 3);
  EXPECT_EQ(batches_until_drift(watch, 256, 60, 100), DriftWatch::kWindowBatches);
  EXPECT_EQ(batches_until_drift(watch, 256, 60, 3000), 0);
}

TEST(DriftWatch, counts_enough_samples_before_it_speaks) {
  DriftWatch watch(classes_like(batch_of(4000, 20, 1)), 3);
  EXPECT_EQ(batches_until_drift(watch, 50, 60, 100), (DriftWatch::kWindowSamples + 49) / 50);
}

TEST(DriftWatch, sees_a_later_drift_in_a_later_window) {
  DriftWatch watch(classes_like(batch_of(4000, 20, 1)), 3);
  EXPECT_EQ(batches_until_drift(watch, 200, 20, 500), 0);
  EXPECT_EQ(batches_until_drift(watch, 200, 60, 2000),
            2 * DriftWatch::kWindowBatches + DriftWatch::kPassed - 500);
}

TEST(DriftWatch, is_silent_where_nothing_drifts) {
  DriftWatch watch(classes_like(batch_of(4000, 20, 1)), 3);
  EXPECT_EQ(batches_until_drift(watch, 128, 20, 3500), 0);
}

/// Two classes of one value: features 0, 2, 3 and feature 1.
FamilyTimes record() {
  FamilyTimes times;
  times.family = "embedding_pool";
  times.classes = {{shape_of(10), {0, 2, 3}}, {shape_of(40), {1}}};
  const auto of = [](const char* schedule) {
    return ClassTimes{{{*parse_schedule(schedule), 5.0, 0.1, ""}}, 10.0, 2.0};
  };
  times.values = {{{128, 0}, {of("a"), of("b")}, 100.0}, {{64, 9}, {of("c"), of("d")}, 90.0}};
  return times;
}

TEST(Regroup, keeps_the_times_of_what_did_not_move_and_makes_classes_of_the_rest) {
  const std::vector<FeatureClass> now{alone(0, 10), alone(1, 41), alone(2, 30), alone(3, 31)};
  const auto [times, moved] = regroup(record(), now);
  ASSERT_EQ(moved.size(), 2u);
  EXPECT_EQ(moved[0].feature, 3);
  EXPECT_EQ(moved[1].feature, 2);
  const std::vector<FeatureClass> expected{
      {shape_of(10), {0}}, {shape_of(40), {1}}, {shape_of(30), {2, 3}}};
  EXPECT_EQ(times.classes, expected);
  ASSERT_EQ(times.values.size(), 2u);
  for (size_t v = 0; v < 2; ++v) {
    EXPECT_EQ(times.values[v].value, record().values[v].value);
    ASSERT_EQ(times.values[v].classes.size(), 3u);
    EXPECT_EQ(times.values[v].classes[0], record().values[v].classes[0]);
    EXPECT_EQ(times.values[v].classes[1], record().values[v].classes[1]);
    EXPECT_TRUE(times.values[v].classes[2].candidates.empty());
    EXPECT_EQ(times.values[v].fused_nanoseconds, 0.0);
  }
}

TEST(Regroup, changes_nothing_where_nothing_moved) {
  const std::vector<FeatureClass> now{alone(0, 10), alone(1, 41), alone(2, 11), alone(3, 9)};
  const auto [times, moved] = regroup(record(), now);
  EXPECT_TRUE(moved.empty());
  EXPECT_EQ(times.classes, record().classes);
}

TEST(Regroup, moves_a_feature_whose_bags_no_more_have_one_lookup_each) {
  FamilyTimes times = record();
  times.classes[0].shape.bags = {};
  std::vector<FeatureClass> now{alone(0, 10), alone(1, 40), alone(2, 10), alone(3, 10)};
  for (const size_t f : {0, 2, 3}) now[f].shape.bags = {};
  EXPECT_TRUE(regroup(times, now).moved.empty());
  now[2].shape.bags = {0.99, 0.1, 0.01, 1};
  const auto moved = regroup(times, now).moved;
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_EQ(moved[0].feature, 2);
  EXPECT_EQ(
      drifted(times.classes, std::vector<BagStats>{{}, shape_of(40).bags, now[2].shape.bags, {}}),
      moved);
}

TEST(Regroup, covers_exactly_the_features_that_there_are) {
  const std::vector<FeatureClass> now{alone(0, 10), alone(2, 100, "x"), alone(7, 100, "y")};
  const auto [times, moved] = regroup(record(), now);
  ASSERT_EQ(moved.size(), 1u);
  const std::vector<FeatureClass> expected{
      {shape_of(10), {0}}, {shape_of(100), {2}, "x"}, {shape_of(100), {7}, "y"}};
  EXPECT_EQ(times.classes, expected);
}

}  // namespace
}  // namespace recmill::kernels::tune
