// SPDX-License-Identifier: Apache-2.0
#include "stats/access_counter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/random.h"
#include "base/testing/faulty_files.h"
#include "stats/access_counts_file.h"
#include "stats/hot_threshold.h"

namespace recmill::stats {
namespace {

using testing::HasSubstr;

/// Three tables of 5,000, 70 and 300,000 rows; the first has two features, the last bags.
ModelSpec small_model() {
  ModelSpec model;
  for (const int64_t rows : {5000, 70, 300'000}) {
    TableSpec& table = model.tables.emplace_back();
    table.name = "t" + std::to_string(model.tables.size() - 1);
    table.rows = rows;
  }
  for (const int table : {0, 1, 0, 2}) {
    model.features.emplace_back().table = table;
  }
  return model;
}

/// Rows drawn with weight about 1 / rank; samples are a function of their number.
SparseBatch draw(int64_t first, int64_t samples, uint64_t seed = 1) {
  const ModelSpec model = small_model();
  SparseBatch batch;
  batch.first = first;
  batch.samples = samples;
  for (size_t f = 0; f < model.features.size(); ++f) {
    const Random random(seed, Purpose::test, f);
    SparseFeature& feature = batch.features.emplace_back();
    feature.one_each = f < 2;
    feature.offsets = {0};
    const auto rows = static_cast<double>(model.tables[model.features[f].table].rows);
    for (int64_t i = first; i < first + samples; ++i) {
      const int64_t bag = feature.one_each ? 1 : i % 4;
      for (int64_t k = 0; k < bag; ++k) {
        const double rank = std::pow(rows, random.uniform64(static_cast<uint64_t>(i), k)) - 1;
        feature.rows.push_back(static_cast<int64_t>(rank) * 7 % static_cast<int64_t>(rows));
      }
      feature.offsets.push_back(std::ssize(feature.rows));
    }
  }
  return batch;
}

using PlainCounts = std::vector<std::map<int64_t, int64_t>>;  // [table], row to lookups

void count_plainly(const SparseBatch& batch, PlainCounts& counts) {
  const ModelSpec model = small_model();
  counts.resize(model.tables.size());
  for (size_t f = 0; f < batch.features.size(); ++f) {
    for (const int64_t row : batch.features[f].rows) ++counts[model.features[f].table][row];
  }
}

AccessCounter new_counter() {
  return *AccessCounter::create(small_model(), "digest");
}

AccessCounter counted(int64_t first, int64_t samples, int64_t batch, int threads) {
  Pool pool(threads);
  AccessCounter counter = new_counter();
  for (int64_t i = first; i < first + samples; i += batch)
    counter.add(draw(i, std::min(batch, first + samples - i)), pool);
  return counter;
}

/// What follows of AccessCounts from plain counts and a threshold.
void expect_cut(const AccessCounts& counts, const PlainCounts& plain, int64_t threshold) {
  for (size_t t = 0; t < plain.size(); ++t) {
    const TableCounts& table = counts.tables[t];
    std::vector<int64_t> hot_rows, hot_counts, ranges(table.range_lookups.size()), tail;
    int64_t lookups = 0;
    tail.resize(static_cast<size_t>(threshold));
    tail[0] = table.rows - std::ssize(plain[t]);
    for (const auto& [row, count] : plain[t]) {
      lookups += count;
      if (count >= threshold) {
        hot_rows.push_back(row);
        hot_counts.push_back(count);
      } else {
        ranges.at(static_cast<size_t>(row / table.range_rows)) += count;
        ++tail[static_cast<size_t>(count)];
      }
    }
    while (!tail.empty() && tail.back() == 0) tail.pop_back();
    EXPECT_EQ(table.hot_rows, hot_rows);
    EXPECT_EQ(table.hot_counts, hot_counts);
    EXPECT_EQ(table.range_lookups, ranges);
    EXPECT_EQ(table.tail_rows_by_count, tail);
    EXPECT_EQ(table.lookups, lookups);
    EXPECT_EQ(table.undercount, 0);
  }
}

int64_t least_hot(const AccessCounts& counts) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const TableCounts& table : counts.tables) {
    for (const int64_t count : table.hot_counts) least = std::min(least, count);
  }
  return least;
}

constexpr int64_t kSamples = 60'000;

TEST(AccessCounter, CountsWhatAMapCounts) {
  PlainCounts plain;
  count_plainly(draw(0, kSamples), plain);
  Pool pool(2);
  const AccessCounts counts = counted(0, kSamples, 7001, 2).finish(pool);
  expect_cut(counts, plain, 1);
  EXPECT_EQ(counts.model, "digest");
  EXPECT_EQ(counts.samples, kSamples);
  EXPECT_EQ(counts.tables[0].bags, kSamples + kSamples / 4 * 3);
  EXPECT_EQ(counts.tables[1].bags, kSamples);
  // Counters wrapped, some of them often.
  EXPECT_GT(*std::ranges::max_element(counts.tables[1].hot_counts), 256 * 10);
}

TEST(AccessCounter, BatchesAndThreadsChangeNothing) {
  Pool pool(2);
  const AccessCounts expected = counted(0, kSamples, kSamples, 1).finish(pool);
  for (const auto& [batch, threads] : {std::pair{100, 1}, {30'000, 4}, {60'000, 3}}) {
    EXPECT_EQ(counted(0, kSamples, batch, threads).finish(pool), expected);
  }
}

TEST(AccessCounter, MergingIsCountingTogether) {
  Pool pool(2);
  AccessCounter counter = counted(0, 1000, 1000, 1);
  counter.merge(counted(1000, 40'000, 1000, 2), pool);
  counter.merge(new_counter(), pool);
  counter.merge(counted(41'000, kSamples - 41'000, 5000, 1), pool);
  EXPECT_EQ(counter.finish(pool), counted(0, kSamples, 9000, 1).finish(pool));
}

TEST(AccessCounter, CutsTheCoolestRowsOfAllTablesSoThatTheFileFits) {
  PlainCounts plain;
  count_plainly(draw(0, kSamples), plain);
  Pool pool(2);
  const AccessCounter counter = counted(0, kSamples, 7001, 2);
  int64_t before = 1;
  for (const int64_t bytes : {30'000, 8'000, 4'000, 3'500}) {
    SCOPED_TRACE(bytes);
    const AccessCounts counts = counter.finish(pool, bytes);
    FaultyFiles files;
    ASSERT_TRUE(write_counts(counts, "x.counts", files, pool).ok());
    EXPECT_LE(std::ssize(files.content("x.counts")), bytes);
    const int64_t threshold = least_hot(counts);
    ASSERT_GT(threshold, before);
    ASSERT_LT(threshold, kAlwaysHot);
    expect_cut(counts, plain, before = threshold);
  }
}

TEST(AccessCounter, CutsRowsWhoseCountersHaveWrapped) {
  SparseBatch batch;
  batch.samples = 1;
  batch.features.resize(small_model().features.size());
  for (SparseFeature& feature : batch.features) feature.offsets = {0, 0};
  std::vector<int64_t>& rows = batch.features[3].rows;
  for (int64_t row = 0; row < 10'000; ++row) rows.insert(rows.end(), row % 600, row * 20);
  batch.features[3].offsets[1] = std::ssize(rows);
  PlainCounts plain;
  count_plainly(batch, plain);
  Pool pool(2);
  AccessCounter counter = new_counter();
  counter.add(batch, pool);
  const AccessCounts counts = counter.finish(pool, 10'000);
  EXPECT_GT(least_hot(counts), 256);
  EXPECT_LT(least_hot(counts), 600);
  EXPECT_EQ(counts.tables[2].bags, 1);
  expect_cut(counts, plain, least_hot(counts));
}

TEST(AccessCounter, FilesOfLargeModelsHaveTheirSize) {
  EXPECT_NEAR(static_cast<double>(default_file_bytes(242'500'000)), 64e6, 1);
  EXPECT_NEAR(static_cast<double>(default_file_bytes(2'500'000'000)), 256e6, 1);
}

TEST(AccessCountsFile, IsReadAsItWasWritten) {
  Pool pool(2);
  const AccessCounter counter = counted(0, kSamples, 7001, 2);
  FaultyFiles files;
  for (const int64_t bytes : {0, 20'000, 100}) {
    const AccessCounts counts = counter.finish(pool, bytes);
    ASSERT_TRUE(write_counts(counts, "x.counts", files, pool).ok());
    const auto read = read_counts("x.counts", "digest", files, pool);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(*read, counts);
  }
  const AccessCounts none = new_counter().finish(pool);
  ASSERT_TRUE(write_counts(none, "x.counts", files, pool).ok());
  EXPECT_EQ(*read_counts("x.counts", "", files, pool), none);
}

TEST(AccessCountsFile, TakesCountsOfAnySize) {
  AccessCounts counts;
  TableCounts& table = counts.tables.emplace_back();
  table.table = "one";
  table.rows = int64_t{1} << 40;
  table.range_rows = 1 << 20;
  table.hot_rows = {0, 1, (int64_t{1} << 40) - 1};
  table.hot_counts = {1, int64_t{1} << 50, int64_t{1} << 31};
  table.range_lookups.resize(1 << 20);
  table.range_lookups[77] = int64_t{1} << 45;
  table.tail_rows_by_count = {(int64_t{1} << 40) - 4, 1};
  for (const auto* list : {&table.hot_counts, &table.range_lookups}) {
    for (const int64_t count : *list) table.lookups += count;
  }
  Pool pool(1);
  FaultyFiles files;
  ASSERT_TRUE(write_counts(counts, "x.counts", files, pool).ok());
  const auto read = read_counts("x.counts", "", files, pool);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, counts);
}

TEST(AccessCountsFile, NamesTheFileAndWhatIsWrongWithIt) {
  Pool pool(1);
  FaultyFiles files;
  ASSERT_TRUE(write_counts(counted(0, 100, 100, 1).finish(pool), "x.counts", files, pool).ok());
  const auto message = [&](const std::string& model = "digest") {
    const auto read = read_counts("x.counts", model, files, pool);
    EXPECT_FALSE(read.ok());
    return read.status().message();
  };
  EXPECT_EQ(message("other"),
            "x.counts: counts rows of another model or data set: its digest is digest, here it is "
            "other");
  std::string& content = files.content("x.counts");
  const std::string whole = content;
  content.back() ^= 1;
  EXPECT_EQ(message(), "x.counts: table 't2': its checksum is wrong");
  content = whole;
  content[60] ^= 1;
  EXPECT_EQ(message(), "x.counts: is damaged: the checksum or length of its head is wrong");
  content = whole;
  content[15] = '2';
  EXPECT_EQ(message(), "x.counts: has another version of the format than 1: recmill-counts 2");
  content = whole.substr(0, whole.size() - 1);
  EXPECT_THAT(message(), HasSubstr("x.counts: is cut short or too long: it has "));
  content = "Not counts";
  EXPECT_EQ(message(), "x.counts: is no file of access counts");
}

TEST(AccessCountsFile, ADamagedByteNeverPasses) {
  Pool pool(1);
  FaultyFiles files;
  ASSERT_TRUE(write_counts(counted(0, 50, 50, 1).finish(pool), "x.counts", files, pool).ok());
  std::string& content = files.content("x.counts");
  for (char& byte : content) {
    byte ^= 4;
    EXPECT_FALSE(read_counts("x.counts", "", files, pool).ok());
    byte ^= 4;
  }
}

TEST(AccessCountsFile, AFailureLeavesAWholeFile) {
  Pool pool(1);
  FaultyFiles files;
  const AccessCounts before = counted(0, 50, 50, 1).finish(pool);
  ASSERT_TRUE(write_counts(before, "x.counts", files, pool).ok());
  const AccessCounts after = counted(50, 50, 50, 1).finish(pool);
  bool written = false;
  for (int64_t n = 0; !written; ++n) {
    files.fail_from(n);
    written = write_counts(after, "x.counts", files, pool).ok();
    files.heal();
    const AccessCounts there = *read_counts("x.counts", "", files, pool);
    EXPECT_TRUE(there == after || (there == before && !written));
  }
}

}  // namespace
}  // namespace recmill::stats
