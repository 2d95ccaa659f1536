// SPDX-License-Identifier: Apache-2.0
#include "kernels/schedule/fixed_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace recmill::kernels {
namespace {

using testing::ElementsAre;

/// Features of these many samples; costs do not matter to what is tested.
std::vector<FeatureWork> features_of(std::span<const int64_t> samples) {
  std::vector<FeatureWork> features;
  for (int64_t count : samples) features.push_back({nullptr, count});
  return features;
}

/// Fails unless every sample of every feature is in exactly one piece.
void expect_whole(const TaskMap& map, std::span<const FeatureWork> features) {
  std::vector<Piece> pieces = map.pieces;
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::pair(a.feature, a.first) < std::pair(b.feature, b.first);
  });
  size_t at = 0;
  for (size_t f = 0; f < features.size(); ++f) {
    for (int64_t next = 0; next < features[f].samples; next = pieces[at++].last) {
      ASSERT_LT(at, pieces.size());
      ASSERT_EQ(pieces[at].feature, static_cast<int64_t>(f));
      ASSERT_EQ(pieces[at].first, next);
      ASSERT_GT(pieces[at].last, next);
    }
  }
  EXPECT_EQ(at, pieces.size());
  EXPECT_EQ(map.begins.front(), 0);
  EXPECT_EQ(map.begins.back(), static_cast<int64_t>(map.pieces.size()));
}

TEST(FixedCuts, give_threads_equal_expected_costs) {
  EXPECT_THAT(fixed_cuts(std::vector{4.0, 2.0, 2.0}, 2),
              ElementsAre(FixedCut{0, 0.0}, FixedCut{1, 0.0}, FixedCut{3, 0.0}));
  EXPECT_THAT(fixed_cuts(std::vector{1.0, 8.0, 1.0}, 2),
              ElementsAre(FixedCut{0, 0.0}, FixedCut{1, 0.5}, FixedCut{3, 0.0}));
  EXPECT_THAT(fixed_cuts(std::vector{8.0}, 4),
              ElementsAre(FixedCut{0, 0.0}, FixedCut{0, 0.25}, FixedCut{0, 0.5}, FixedCut{0, 0.75},
                          FixedCut{1, 0.0}));
}

TEST(FixedCuts, leave_one_thread_all_where_nothing_costs_anything) {
  TaskMap map;
  const std::vector<int64_t> samples{3, 4};
  const auto features = features_of(samples);
  map_fixed(features, fixed_cuts(std::vector{0.0, 0.0}, 2), kWholeFeature, map);
  expect_whole(map, features);
  EXPECT_EQ(map.tasks(), 1);
}

TEST(FixedMap, is_one_task_a_thread_whatever_the_batch_is_like) {
  const auto cuts = fixed_cuts(std::vector{1.0, 8.0, 1.0}, 2);
  TaskMap map;
  const std::vector<int64_t> tuned{10, 10, 10}, other{100, 3, 7};
  map_fixed(features_of(tuned), cuts, kWholeFeature, map);
  EXPECT_THAT(map.pieces,
              ElementsAre(Piece{0, 0, 10}, Piece{1, 0, 5}, Piece{1, 5, 10}, Piece{2, 0, 10}));
  EXPECT_THAT(map.begins, ElementsAre(0, 2, 4));
  map_fixed(features_of(other), cuts, kWholeFeature, map);
  EXPECT_THAT(map.pieces,
              ElementsAre(Piece{0, 0, 100}, Piece{1, 0, 2}, Piece{1, 2, 3}, Piece{2, 0, 7}));
  EXPECT_THAT(map.begins, ElementsAre(0, 2, 4));
}

TEST(FixedMap, covers_every_sample_once_at_any_cuts_and_tiles) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const Random random(seed, Purpose::test);
    std::vector<double> costs;
    std::vector<int64_t> samples;
    for (uint64_t f = 0; f < 1 + random.below(9, 0); ++f) {
      costs.push_back(random.below(3, f, 1) == 0 ? 0.0 : random.uniform(f, 2));
      samples.push_back(static_cast<int64_t>(random.below(40, f, 3)));
    }
    const auto features = features_of(samples);
    const auto tile = static_cast<int64_t>(1 + random.below(20, 4));
    TaskMap map;
    map_fixed(features, fixed_cuts(costs, 1 + static_cast<int>(random.below(5, 5))), tile, map);
    expect_whole(map, features);
    for (const Piece& piece : map.pieces) EXPECT_LE(piece.last - piece.first, tile);
  }
}

TEST(SampleBlocks, are_tasks_of_all_features) {
  const std::vector<int64_t> samples{5, 5};
  const auto features = features_of(samples);
  TaskMap map;
  map_sample_blocks(features, 2, map);
  expect_whole(map, features);
  EXPECT_EQ(map.tasks(), 3);
  EXPECT_THAT(std::vector(map.pieces.begin() + 2, map.pieces.begin() + 4),
              ElementsAre(Piece{0, 2, 4}, Piece{1, 2, 4}));
  map_sample_blocks({}, 2, map);
  EXPECT_EQ(map.tasks(), 0);
}

}  // namespace
}  // namespace recmill::kernels
