// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/json/json.h"
#include "base/random.h"
#include "stats/collector.h"

namespace recmill::stats {
namespace {

constexpr uint64_t seed = 21;

/// Rank drawn with weight about rank^-1, from 0.
uint64_t skewed(const Random& random, uint64_t item, uint64_t ranks) {
  return static_cast<uint64_t>(std::pow(static_cast<double>(ranks), random.uniform64(item))) - 1;
}

/// `samples` rows of two id columns (one id; bags of 0 to 5) and one dense column.
ColumnBatch draw(int64_t first, int64_t samples) {
  const Random random(seed, Purpose::test), bags(seed, Purpose::test, 1);
  ColumnBatch batch;
  batch.samples = samples;
  batch.dense.resize(1);
  batch.ids.resize(2);
  for (IdColumn& column : batch.ids) column.offsets = {0};
  for (int64_t i = first; i < first + samples; ++i) {
    const auto item = static_cast<uint64_t>(i);
    batch.labels.push_back(i % 4 == 0 ? 1.0f : 0.0f);
    batch.dense[0].push_back(i % 10 == 0 ? std::numeric_limits<float>::quiet_NaN()
                                         : static_cast<float>(i % 7) - 2);
    batch.ids[0].ids.push_back(skewed(random, item, 5000));
    batch.ids[0].offsets.push_back(static_cast<int64_t>(batch.ids[0].ids.size()));
    for (uint64_t k = 0; k < item % 6; ++k) batch.ids[1].ids.push_back(bags.below(300, item, k));
    batch.ids[1].offsets.push_back(static_cast<int64_t>(batch.ids[1].ids.size()));
  }
  return batch;
}

DataSchema schema_of_draw() {
  DataSchema schema;
  schema.dense = {"x"};
  schema.ids = {"one", "bag"};
  return schema;
}

FeatureStats collected(int64_t batch_size, int threads, int64_t limit) {
  ThreadPool pool(threads);
  Collector collector(schema_of_draw(), limit);
  for (int64_t first = 0; first < 20000; first += batch_size) {
    collector.add(draw(first, std::min<int64_t>(batch_size, 20000 - first)), pool);
  }
  const auto modulo = [](uint64_t id) { return static_cast<int64_t>(id % 1000); };
  return collector.finish({{1000, modulo}, {}});
}

}  // namespace

TEST(Collector, equals_plain_counts) {
  const FeatureStats stats = collected(20000, 1, 10000);
  const ColumnBatch all = draw(0, 20000);
  std::map<uint64_t, int64_t> counts;
  std::set<uint64_t> rows;
  for (uint64_t id : all.ids[0].ids) {
    ++counts[id];
    rows.insert(id % 1000);
  }
  std::vector<int64_t> sorted;
  for (const auto& [id, count] : counts) sorted.push_back(count);
  std::sort(sorted.rbegin(), sorted.rend());
  const auto share = [&](double top) {
    const auto ids = static_cast<size_t>(std::ceil(top * static_cast<double>(sorted.size())));
    int64_t taken = 0;
    for (size_t i = 0; i < ids; ++i) taken += sorted[i];
    return static_cast<double>(taken) / 20000;
  };
  const IdColumnStats& one = stats.ids[0];
  EXPECT_TRUE(one.exact);
  EXPECT_EQ(one.name, "one");
  EXPECT_EQ(one.lookups, 20000);
  EXPECT_EQ(one.missing, 0);
  EXPECT_EQ(one.lengths, (std::vector<int64_t>{0, 20000}));
  EXPECT_EQ(one.cardinality, static_cast<int64_t>(counts.size()));
  EXPECT_EQ(one.top_1_percent, share(0.01));
  EXPECT_EQ(one.top_10_percent, share(0.1));
  EXPECT_NEAR(one.zipf, 1.0, 0.15);
  EXPECT_EQ(one.observed_collisions, one.cardinality - static_cast<int64_t>(rows.size()));
  const IdColumnStats& bag = stats.ids[1];
  EXPECT_EQ(bag.lengths, (std::vector<int64_t>{3334, 3334, 6666, 6666}));
  EXPECT_EQ(bag.missing, 3334);
  EXPECT_EQ(bag.longest, 5);
  EXPECT_EQ(bag.table_rows, 0);
  EXPECT_EQ(bag.observed_collisions, -1);
  EXPECT_EQ(stats.dense[0].missing, 2000);
  EXPECT_EQ(stats.dense[0].minimum, -2);
  EXPECT_EQ(stats.dense[0].maximum, 4);
  EXPECT_EQ(stats.label_mean, 0.25);
}

TEST(Collector, tells_the_label_by_value_and_by_id) {
  const FeatureStats stats = collected(20000, 1, 10000);
  const ColumnBatch all = draw(0, 20000);
  // -2, -1, 0, 1, 2, 3, 4: each by itself.
  const DenseColumnStats& dense = stats.dense[0];
  ASSERT_EQ(dense.buckets.size(), 7u);
  double missing_labels = 0;
  std::map<float, std::pair<int64_t, double>> by_value;
  for (size_t i = 0; i < all.labels.size(); ++i) {
    const float value = all.dense[0][i];
    if (std::isnan(value)) {
      missing_labels += all.labels[i];
    } else {
      ++by_value[value].first;
      by_value[value].second += all.labels[i];
    }
  }
  EXPECT_EQ(dense.missing_labels, missing_labels);
  auto bucket = dense.buckets.begin();
  for (const auto& [value, of] : by_value) {
    EXPECT_TRUE(value < 0 ? bucket->from < value && value <= bucket->to
                          : bucket->from <= value && value <= bucket->to)
        << value;
    EXPECT_EQ(bucket->cells, of.first);
    EXPECT_EQ(bucket->labels, of.second);
    ++bucket;
  }
  std::map<uint64_t, FrequentId> by_id;
  for (size_t i = 0; i < all.labels.size(); ++i) {
    FrequentId& of = by_id[all.ids[0].ids[i]];
    of.id = all.ids[0].ids[i];
    ++of.lookups;
    of.labels += all.labels[i];
  }
  ASSERT_EQ(stats.ids[0].frequent.size(), 12u);
  for (const FrequentId& id : stats.ids[0].frequent) EXPECT_EQ(id, by_id[id.id]);
  EXPECT_EQ(stats.ids[0].frequent[0].id, 0u);
  EXPECT_EQ(stats.ids[1].missing_labels, 1667.0);
}

TEST(Collector, gives_the_same_figures_for_any_batches_and_threads) {
  for (int64_t limit : {50, 10000}) {
    const FeatureStats expected = collected(20000, 1, limit);
    for (int64_t batch : {1, 999, 4096}) EXPECT_EQ(collected(batch, 3, limit), expected);
  }
}

TEST(IdCounts, keeps_the_frequent_ids_beyond_its_limit_within_the_stated_error) {
  const Random random(seed, Purpose::test, 2);
  IdCounts counts(1000);
  std::map<uint64_t, int64_t> exact;
  const int64_t lookups = 300000;
  for (int64_t i = 0; i < lookups; ++i) {
    const uint64_t id = skewed(random, static_cast<uint64_t>(i), 200000);
    counts.add(id);
    ++exact[id];
  }
  EXPECT_FALSE(counts.exact());
  EXPECT_LE(counts.held().size(), 1000u);
  EXPECT_LE(counts.undercount(), 2 * lookups / 1000);
  for (const auto& [id, count] : exact) {
    const auto held = counts.held().find(id);
    const int64_t seen = held == counts.held().end() ? 0 : held->second;
    ASSERT_LE(seen, count) << "seed " << seed << " id " << id;
    ASSERT_GE(seen + counts.undercount(), count) << "seed " << seed << " id " << id;
  }
  const auto cardinality = static_cast<double>(exact.size());
  EXPECT_NEAR(static_cast<double>(counts.cardinality()), cardinality, 0.03 * cardinality);
}

TEST(HyperLogLog, is_within_four_standard_errors) {
  for (int64_t count : {0, 1, 100, 20000, 41000, 100000, 1000000}) {
    HyperLogLog sketch;
    for (int64_t i = 0; i < count; ++i) {
      sketch.add(static_cast<uint64_t>(i) * 7919);
      if (i % 3 == 0) sketch.add(static_cast<uint64_t>(i) * 7919);
    }
    const auto expected = static_cast<double>(count);
    EXPECT_NEAR(sketch.estimate(), expected, 4 * 0.0081 * expected + 1e-9) << count;
  }
}

TEST(ExpectedCollisions, equals_the_mean_over_random_hashes) {
  EXPECT_EQ(expected_collisions(0, 10), 0.0);
  EXPECT_NEAR(expected_collisions(1, 10), 0.0, 1e-12);
  EXPECT_NEAR(expected_collisions(2, 10), 0.1, 1e-12);
  EXPECT_EQ(expected_collisions(5, 1), 4.0);
  const Random random(seed, Purpose::test, 3);
  double collisions = 0;
  const int trials = 200;
  for (int t = 0; t < trials; ++t) {
    std::set<uint64_t> rows;
    for (uint64_t i = 0; i < 500; ++i) rows.insert(random.below(1000, i, t));
    collisions += 500.0 - static_cast<double>(rows.size());
  }
  EXPECT_NEAR(expected_collisions(500, 1000), collisions / trials, 1.5);
}

TEST(FeatureStats, reads_back_from_its_json) {
  const FeatureStats stats = collected(4096, 2, 50);
  const auto read = feature_stats_from_json(to_json(stats));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, stats);
  Json damaged = to_json(stats);
  damaged["ids"][1].erase("zipf");
  EXPECT_EQ(feature_stats_from_json(damaged).status().message(),
            "feature stats: no key ids[1].zipf");
  damaged = to_json(stats);
  damaged["samples"] = "many";
  EXPECT_EQ(feature_stats_from_json(damaged).status().message(),
            "feature stats: samples: a value of another type");
  EXPECT_FALSE(feature_stats_from_json(Json::array()).ok());
}

TEST(TableOf, shows_each_column_and_marks_estimates) {
  const std::string exact = table_of(collected(4096, 1, 10000));
  EXPECT_NE(exact.find("20000 samples, mean label 0.2500"), std::string::npos) << exact;
  EXPECT_NE(exact.find("one "), std::string::npos);
  EXPECT_EQ(exact.find('~'), std::string::npos) << exact;
  EXPECT_NE(table_of(collected(4096, 1, 50)).find('~'), std::string::npos);
}

}  // namespace recmill::stats
