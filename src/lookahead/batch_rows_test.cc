// SPDX-License-Identifier: Apache-2.0
#include "lookahead/batch_rows.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace recmill::lookahead {
namespace {

TEST(BatchRows, are_the_distinct_rows_of_some_samples_in_order) {
  ModelSpec model;
  for (const int64_t rows : {1, 70, 1 << 20, 3, 5000}) {
    model.tables.emplace_back().rows = rows;
    model.features.push_back({.name = "f", .table = static_cast<int>(model.tables.size()) - 1});
  }
  model.features.push_back({.name = "shared", .table = 2});
  BatchRows finder(model);
  const SlotTables numbers(model);
  ThreadPool pool(2);
  std::mt19937_64 random(3);
  for (int round = 0; round < 50; ++round) {
    SparseBatch batch;
    batch.samples = 40;
    for (const FeatureSpec& spec : model.features) {
      SparseFeature& feature = batch.features.emplace_back();
      feature.offsets.assign(1, 0);
      for (int64_t sample = 0; sample < batch.samples; ++sample) {
        const auto rows = static_cast<uint64_t>(model.tables[spec.table].rows);
        for (auto left = random() % 4; left > 0; --left)
          feature.rows.push_back(static_cast<int64_t>(random() % (random() % 2 ? rows : 9) % rows));
        feature.offsets.push_back(std::ssize(feature.rows));
      }
    }
    const auto begin = static_cast<int64_t>(random() % 41);
    const auto end = begin + static_cast<int64_t>(random() % static_cast<uint64_t>(41 - begin));
    std::set<int64_t> expected;
    for (size_t f = 0; f < model.features.size(); ++f)
      for (auto i = batch.features[f].offsets[begin]; i < batch.features[f].offsets[end]; ++i)
        expected.insert(numbers.begin(model.features[f].table) + batch.features[f].rows[i]);
    std::vector<int64_t> rows;
    finder.find(batch, begin, end, pool, rows);
    EXPECT_EQ(rows, std::vector<int64_t>(expected.begin(), expected.end()));
  }
}

}  // namespace
}  // namespace recmill::lookahead
