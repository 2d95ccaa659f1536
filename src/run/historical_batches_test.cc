// SPDX-License-Identifier: Apache-2.0
#include "run/historical_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/temporary_folder.h"
#include "run/testing/bags_run.h"

namespace recmill::train {
namespace {

ResolvedRun resolved(const RunOptions& options) {
  auto run = resolve_run(options, posix_files());
  EXPECT_TRUE(run.ok()) << run.status().message();
  return *std::move(run);
}

/// Batches of the given sizes as one list of rows for each feature, and of lengths.
struct Seen {
  std::vector<std::vector<int64_t>> rows, lengths;
  bool operator==(const Seen&) const = default;
};
Seen see(const ResolvedRun& run, uint64_t seed, const std::vector<int64_t>& sizes) {
  ThreadPool pool(2);
  auto batches = HistoricalBatches::open(run, seed, pool, posix_files());
  EXPECT_TRUE(batches.ok()) << batches.status().message();
  Seen seen;
  SparseBatch batch;
  for (const int64_t size : sizes) {
    const Status status = batches->next(size, batch);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(batch.samples, size);
    seen.rows.resize(batch.features.size());
    seen.lengths.resize(batch.features.size());
    for (size_t f = 0; f < batch.features.size(); ++f) {
      const SparseFeature& feature = batch.features[f];
      seen.rows[f].insert(seen.rows[f].end(), feature.rows.begin(), feature.rows.end());
      for (int64_t i = 0; i < size; ++i) {
        seen.lengths[f].push_back(feature.offsets[i + 1] - feature.offsets[i]);
      }
    }
  }
  return seen;
}

}  // namespace

TEST(HistoricalBatches, give_the_same_samples_in_batches_of_any_sizes) {
  const ResolvedRun run = resolved(bags_run(300));
  const Seen whole = see(run, 3, {200});
  EXPECT_EQ(see(run, 3, {1, 0, 64, 100, 35}), whole);
  ASSERT_EQ(whole.rows.size(), 3u);
  for (const int64_t row : whole.rows[2]) EXPECT_LT(row, 50);
  EXPECT_GT(std::count(whole.lengths[2].begin(), whole.lengths[2].end(), 0), 0);
}

TEST(HistoricalBatches, go_on_from_the_beginning_where_the_data_ends) {
  const ResolvedRun run = resolved(bags_run(300));
  const Seen once = see(run, 3, {300});
  const Seen twice = see(run, 3, {250, 700});
  for (size_t f = 0; f < once.lengths.size(); ++f) {
    ASSERT_EQ(twice.lengths[f].size(), 950u);
    for (size_t i = 0; i < 950; ++i) ASSERT_EQ(twice.lengths[f][i], once.lengths[f][i % 300]);
    ASSERT_TRUE(std::equal(once.rows[f].begin(), once.rows[f].end(), twice.rows[f].begin()));
  }
}

TEST(HistoricalBatches, are_others_for_another_seed) {
  const ResolvedRun run = resolved(bags_run(300));
  EXPECT_NE(see(run, 1, {100}).rows, see(run, 2, {100}).rows);
}

TEST(HistoricalBatches, start_at_another_row_of_a_file_for_another_seed) {
  const TemporaryFolder folder;
  std::string text;
  for (int64_t i = 0; i < 100; ++i) text += "0," + std::to_string(i) + "\n";
  ASSERT_TRUE(write_atomically(posix_files(), folder.path() + "/a.csv", text).ok());
  RunOptions options;
  options.data.format = DataFormat::csv;
  options.data.path = folder.path();
  options.data.train = {"a.csv"};
  options.data.cache = "";
  options.data.header = false;
  options.data.columns.resize(2);
  options.data.columns[0].name = "y";
  options.data.columns[0].role = ColumnRole::label;
  options.data.columns[1].name = "id";
  options.data.columns[1].role = ColumnRole::id;
  options.data.columns[1].id_text = IdText::integer;
  options.data.shuffle.kind = ShuffleKind::none;
  options.embedding.rows = {100};
  options.embedding.mapping = preprocess::Mapping::direct;
  options.model.kind = model::ModelKind::wide_and_deep;
  options.model.deep = {4};
  options.model.deep_input = model::DeepInput::rows;
  const ResolvedRun run = resolved(options);
  const Seen a = see(run, 1, {60, 60}), b = see(run, 2, {60, 60});
  EXPECT_NE(a, b);
  for (const Seen& seen : {a, b}) {
    for (size_t i = 1; i < 120; ++i) {
      ASSERT_EQ(seen.rows[0][i], (seen.rows[0][i - 1] + 1) % 100);
    }
  }
}

TEST(TuneBatchSize, draws_evenly_from_each_eighth_of_the_list_by_seed) {
  RunOptions options;
  options.train.batch_size = 77;
  EXPECT_EQ(tune_batch_size(options, 1, 5), 77);
  for (int64_t size = 0; size < 16; ++size) options.tune.batch_sizes.push_back(size * 5 % 16);
  std::vector<int64_t> counts(16);
  int64_t same = 0;
  for (int64_t i = 0; i < 4000; i += 8) {
    std::set<int64_t> eighths;
    for (int64_t k = i; k < i + 8; ++k) {
      const int64_t size = tune_batch_size(options, 1, k);
      eighths.insert(size / 2);
      ++counts[size];
      same += size == tune_batch_size(options, 2, k);
    }
    ASSERT_EQ(eighths.size(), 8u) << i;
  }
  for (const int64_t count : counts) EXPECT_NEAR(count, 250, 60);
  EXPECT_NEAR(same, 2000, 200);
  options.tune.batch_sizes = {3, 1, 2};  // fewer than eighths
  for (int64_t i = 0; i < 8; ++i) counts[tune_batch_size(options, 1, i)] = -1;
  EXPECT_EQ(std::ranges::count(counts, -1), 3);
}

}  // namespace recmill::train
