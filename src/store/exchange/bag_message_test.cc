// SPDX-License-Identifier: Apache-2.0
#include "store/exchange/bag_message.h"

#include <gtest/gtest.h>

#include "base/status.h"
#include "store/testing/scenario.h"

namespace recmill::store {
namespace {

/// The bags of samples cut at `cuts` in turn, sent and taken one after the other.
SparseBatch sent(const SparseBatch& batch, std::initializer_list<int64_t> cuts) {
  SparseBatch together;
  together.first = batch.first;
  together.samples = batch.samples;
  together.features.resize(batch.features.size());
  for (SparseFeature& feature : together.features) feature.offsets.push_back(0);
  int64_t begin = 0;
  for (const int64_t end : cuts) {
    std::vector<int64_t> message;
    for (const SparseFeature& feature : batch.features)
      append_bags(feature.view(batch.samples).slice(begin, end), message);
    BagReader reader(std::as_bytes(std::span(message)));
    for (SparseFeature& feature : together.features) reader.take(end - begin, feature);
    EXPECT_TRUE(reader.is_at_end());
    begin = end;
  }
  return together;
}

TEST(BagMessage, parts_of_a_batch_come_back_as_the_whole) {
  const SparseBatch batch = testing::random_batch(testing::scenario_model(), 3, 1, 20);
  for (const auto& cuts : {std::initializer_list<int64_t>{20}, {0, 7, 7, 20, 20}, {1, 2, 19, 20}}) {
    const SparseBatch together = sent(batch, cuts);
    for (size_t f = 0; f < batch.features.size(); ++f) {
      const SparseFeature &is = together.features[f], &was = batch.features[f];
      EXPECT_EQ(is.offsets, was.offsets) << f;
      EXPECT_EQ(is.rows, was.rows) << f;
      EXPECT_EQ(is.weights, was.weights) << f;
      EXPECT_EQ(is.one_each, was.one_each) << f;
    }
  }
}

TEST(BagMessage, lookups_without_weights_get_1_beside_others) {
  const SparseFeature with{{0, 2}, {5, 6}, {0.5f, 2.0f}}, without{{0, 1}, {int64_t{1} << 40}, {}};
  SparseFeature together{{0}, {}, {}};
  std::vector<int64_t> message;
  for (const SparseFeature* part : {&without, &with, &without}) append_bags(part->view(1), message);
  BagReader reader(std::as_bytes(std::span(message)));
  for (int part = 0; part < 3; ++part) reader.take(1, together);
  EXPECT_TRUE(reader.is_at_end());
  EXPECT_EQ(together.weights, (std::vector<float>{1.0f, 0.5f, 2.0f, 1.0f}));
  EXPECT_EQ(together.rows, (std::vector<int64_t>{int64_t{1} << 40, 5, 6, int64_t{1} << 40}));
  EXPECT_EQ(together.offsets, (std::vector<int64_t>{0, 1, 3, 4}));
}

}  // namespace
}  // namespace recmill::store
