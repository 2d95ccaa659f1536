// SPDX-License-Identifier: Apache-2.0
#include "run/placement/sampled_lookups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "comm/threads.h"
#include "reader/writers/writer.h"
#include "run/checkpoint/row_digest.h"
#include "run/hotset/count_hot_inputs.h"
#include "run/hotset/run_hot_set.h"
#include "run/placement/count_accesses.h"
#include "run/placement/placement_problem.h"
#include "run/rank.h"
#include "stats/access_counter.h"

namespace recmill::train {
namespace {

/// Two columns of one id, of which one drifts, and a bag, of tables that are not always hot.
RunOptions skewed_run(int64_t rows, double share) {
  RunOptions options;
  options.data.format = DataFormat::synthetic;
  reader::SyntheticOptions& synthetic = options.data.synthetic;
  synthetic.shape = reader::SyntheticShape::columns;
  synthetic.rows = rows;
  synthetic.eval_rows = 0;
  synthetic.popularity = 0.5;
  synthetic.ids = {
      {.name = "a", .cardinality = 5000},
      {.name = "b", .cardinality = 5000, .drift = 10'000},
      {.name = "c", .cardinality = 5000, .mean_length = 2, .max_length = 5, .empty_share = 0.2}};
  synthetic.planted.crosses = 0;
  synthetic.planted.columns = 1;
  options.embedding.rows = {20'000};
  options.embedding.mapping = preprocess::Mapping::modulo;
  options.model.kind = model::ModelKind::mlp;
  options.model.top = {4, 1};
  options.train.slices = 8;
  options.train.ranks = 1;
  options.train.threads = 2;
  options.hotset.bytes = 1 << 16;
  options.hotset.sample = share;
  return options;
}

ResolvedRun resolved(const RunOptions& options) {
  auto run = resolve_run(options, posix_files());
  EXPECT_TRUE(run.ok()) << run.status().message();
  return *std::move(run);
}

std::unique_ptr<HotCensus> census_of(const ResolvedRun& run) {
  auto census = count_hot_inputs(run, 0, posix_files(), Progress::Style::silent);
  EXPECT_TRUE(census.ok()) << census.status().message();
  return *std::move(census);
}

/// All training inputs by a census's set, the plain way.
hotset::HotFigures figures_of_all(const ResolvedRun& run, const HotCensus& census) {
  ThreadPool pool(2);
  hotset::HotInputs all(census.problem, run.spec, census.counts, census.set);
  TrainingLookups lookups(run, pool);
  EXPECT_TRUE(lookups.open(posix_files()).ok());
  Progress progress(Progress::Style::silent, "", "", 0);
  const auto add = [&](const SparseBatch& batch) { all.add(batch, pool); };
  EXPECT_TRUE(lookups.visit(0, lookups.rows(), progress, add).ok());
  return all.figures();
}

}  // namespace

TEST(SampledLookups, are_those_of_its_blocks_whatever_the_ranks) {
  RunOptions options = skewed_run(40'500, 0.3);
  options.train.negative_keep = 0.5;
  const ResolvedRun run = resolved(options);
  ThreadPool pool(2);
  Progress progress(Progress::Style::silent, "", "", 0);
  for (const auto part : {SampledLookups::Part::counting, SampledLookups::Part::all}) {
    auto plain = *stats::AccessCounter::create(run.spec, row_digest(run));
    SampledLookups sampled(run, pool);
    ASSERT_TRUE(sampled.open(0.3, "hotset.sample", posix_files()).ok());
    EXPECT_EQ(sampled.sample().all_blocks, 41);
    EXPECT_EQ(sampled.sample().blocks.size(), 13u);
    for (const LookupSample::Block& block : sampled.sample().blocks) {
      if (block.judges && part == SampledLookups::Part::counting) continue;
      TrainingLookups lookups(run, pool);
      ASSERT_TRUE(lookups.open(posix_files()).ok());
      ASSERT_TRUE(lookups
                      .visit(block.rows.first, block.rows.first + block.rows.count, progress,
                             [&](const SparseBatch& batch) { plain.add(batch, pool); })
                      .ok());
    }
    for (const int64_t ranks : {1, 2, 8}) {
      auto counter = *stats::AccessCounter::create(run.spec, row_digest(run));
      for (int64_t rank = 0; rank < ranks; ++rank) {
        SampledLookups lookups(run, pool);
        ASSERT_TRUE(lookups.open(0.3, "hotset.sample", posix_files()).ok());
        ASSERT_TRUE(lookups
                        .visit(part, rank, ranks, progress,
                               [&](const LookupSample::Block&, const SparseBatch& batch) {
                                 counter.add(batch, pool);
                               })
                        .ok());
      }
      EXPECT_EQ(counter.finish(pool), plain.finish(pool)) << ranks;
    }
  }
}

TEST(SampledLookups, decode_5_of_100_row_groups_for_5_percent_of_a_file) {
  constexpr int64_t kGroups = 8000, kGroupRows = 25;
  const TemporaryFolder folder;
  DataSchema schema;
  schema.ids = {"a"};
  reader::WriterOptions writing;
  writing.row_group_rows = kGroupRows;
  auto writer =
      reader::open_writer(writing, folder.path() + "/many.parquet", schema, posix_files());
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  ColumnBatch rows;
  rows.samples = kGroups * kGroupRows;
  rows.labels.assign(static_cast<size_t>(rows.samples), 0.0f);
  rows.ids.resize(1);
  for (int64_t i = 0; i <= rows.samples; ++i) rows.ids[0].offsets.push_back(i);
  for (int64_t i = 0; i < rows.samples; ++i) rows.ids[0].ids.push_back(i % 999);
  ASSERT_TRUE((*writer)->write(rows).ok() && (*writer)->close().ok());
  RunOptions options = skewed_run(1, 0.05);
  options.data = {};
  options.data.format = DataFormat::parquet;
  options.data.train = {folder.path() + "/many.parquet"};
  options.data.shuffle.kind = ShuffleKind::window;
  const ResolvedRun run = resolved(options);
  ThreadPool pool(2);
  SampledLookups lookups(run, pool);
  ASSERT_TRUE(lookups.open(0.05, "hotset.sample", posix_files()).ok());
  int64_t inputs = 0;
  Progress progress(Progress::Style::silent, "", "", 0);
  ASSERT_TRUE(lookups
                  .visit(SampledLookups::Part::all, 0, 1, progress,
                         [&](const LookupSample::Block&, const SparseBatch& batch) {
                           inputs += batch.samples;
                         })
                  .ok());
  EXPECT_EQ(inputs, kGroups * kGroupRows / 20);
  EXPECT_EQ(lookups.row_groups(), kGroups / 20);
}

TEST(SampledLookups, are_refused_where_ids_are_numbered_as_they_come) {
  RunOptions options = skewed_run(5000, 0.5);
  options.embedding.mapping = preprocess::Mapping::dictionary;
  const ResolvedRun run = resolved(options);
  const auto census = count_hot_inputs(run, 0, posix_files(), Progress::Style::silent);
  EXPECT_THAT(census.status().message(), ::testing::StartsWith("hotset.sample: 0.5 of the data "));
  options.placement.sample = 0.5;
  EXPECT_THAT(placement_counts(resolved(options), posix_files()).status().message(),
              ::testing::StartsWith("placement.sample: 0.5 of the data "));
}

TEST(SampledLookups, are_what_accesses_and_placements_are_counted_by_where_a_share_is_given) {
  RunOptions options = skewed_run(40'500, 0.3);
  options.placement.sample = 0.3;
  options.placement.count_samples = 100;
  const auto placed = placement_counts(resolved(options), posix_files());
  ASSERT_TRUE(placed.ok()) << placed.status().message();
  EXPECT_GE(placed->samples, 12'500);
  EXPECT_LE(placed->samples, 13'000);
  for (const int64_t ranks : {1, 2}) {
    options.train.ranks = ranks;
    ThreadsWorld world;
    const auto counts = count_accesses(options, {}, {posix_files(), world, "", {}});
    ASSERT_TRUE(counts.ok()) << counts.status().message();
    EXPECT_EQ(**counts, *placed) << ranks;
  }
  options.placement.sample = 0;
  EXPECT_EQ(placement_counts(resolved(options), posix_files())->samples, 100);
}

TEST(SampledCensus, decides_the_same_set_at_any_number_of_ranks) {
  RunOptions options = skewed_run(40'500, 0.3);
  const HotSet expected = census_of(resolved(options))->set;
  EXPECT_LT(expected.inputs, 10'001);
  EXPECT_GT(expected.hot(), 0);
  for (const int64_t ranks : {1, 2, 4}) {
    options.train.ranks = ranks;
    ThreadsWorld world;
    const auto run = resolve_run(options, world, posix_files());
    ASSERT_TRUE(run.ok()) << run.status().message();
    const auto set = find_hot_set(*run, 0, {}, world, posix_files(), Progress::Style::silent);
    ASSERT_TRUE(set.ok()) << set.status().message();
    EXPECT_EQ(**set, expected);
  }
}

TEST(SampledCensus, is_that_of_all_inputs_where_all_blocks_are_drawn) {
  const ResolvedRun run = resolved(skewed_run(40'500, 1)),
                    most = resolved(skewed_run(40'500, 0.99));
  const auto exact = census_of(run), sampled = census_of(most);
  ASSERT_TRUE(!exact->judged && sampled->judged);
  EXPECT_EQ(sampled->judged->sample.rest_rows, 0);
  EXPECT_EQ(sampled->set, exact->set);
  EXPECT_EQ(sampled->inputs(), 40'500);
  EXPECT_EQ(sampled->lookups(), exact->lookups());
  EXPECT_EQ(sampled->of_set(), exact->of_set());
  EXPECT_EQ(sampled->at(3), exact->at(3));
  const auto& shares = sampled->judged->shares;
  EXPECT_EQ(shares.inputs.low, shares.inputs.high);
  EXPECT_EQ(shares.inputs.share, static_cast<double>(exact->of_set().hot_inputs) / 40'500);
}

TEST(SampledCensus, holds_what_its_set_makes_hot_of_all_data_in_its_intervals) {
  for (const int64_t seed : {1, 2, 3, 4}) {
    RunOptions options = skewed_run(150'000, 0.2);
    options.train.seed = seed;
    const ResolvedRun run = resolved(options);
    const auto census = census_of(run);
    const hotset::HotFigures truth = figures_of_all(run, *census);
    const auto inputs = static_cast<double>(truth.hot_inputs) / 150'000;
    const auto& shares = census->judged->shares;
    EXPECT_LE(shares.inputs.low, inputs) << "seed " << seed;
    EXPECT_GE(shares.inputs.high, inputs) << "seed " << seed;
    EXPECT_LT(shares.inputs.high - shares.inputs.low, 0.2);
    // Inputs and rows of the data are known; what is hot of them is estimated, alike for any
    // cutoff.
    EXPECT_EQ(census->inputs(), 150'000);
    const hotset::HotFigures estimate = census->of_set();
    EXPECT_EQ(census->at(census->set.cutoff), estimate);
    EXPECT_EQ(estimate.hot_rows, truth.hot_rows);
    EXPECT_NEAR(static_cast<double>(estimate.hot_inputs) / 150'000, shares.inputs.share, 1e-5);
    EXPECT_NEAR(static_cast<double>(estimate.far_lookups) / static_cast<double>(census->lookups()),
                1 - shares.lookups.share, 1e-5);
    EXPECT_NEAR(static_cast<double>(estimate.far_lookups), static_cast<double>(truth.far_lookups),
                0.05 * static_cast<double>(truth.far_lookups));
  }
}

}  // namespace recmill::train
