// SPDX-License-Identifier: Apache-2.0
#include "run/placement/count_accesses.h"

#include <gtest/gtest.h>

#include <map>

#include "comm/threads.h"
#include "run/rank.h"
#include "run/testing/bags_run.h"

namespace recmill::train {
namespace {

RunOptions small_run() {
  RunOptions options = bags_run(3000);
  options.train.slices = 8;
  options.train.ranks = 1;
  return options;
}

AccessCounts counted(RunOptions options, int64_t ranks, int64_t threads, int64_t rows = 0) {
  options.train.ranks = ranks;
  options.train.threads = threads;
  ThreadsWorld world;
  const JobSetting setting{posix_files(), world, "", {}};
  auto counts = count_accesses(options, {.rows = rows}, setting);
  EXPECT_TRUE(counts.ok()) << counts.status().message();
  return **std::move(counts);
}

using PlainCounts = std::vector<std::map<int64_t, int64_t>>;  // [table], row to lookups

void add(const ModelSpec& spec, const SparseBatch& batch, PlainCounts& counts) {
  counts.resize(spec.tables.size());
  for (size_t f = 0; f < batch.features.size(); ++f) {
    for (const int64_t row : batch.features[f].rows) ++counts[spec.features[f].table][row];
  }
}

/// Of what the stage hands to one epoch of training, the plain way.
PlainCounts trained(const RunOptions& options) {
  PlainCounts counts;
  const Status status = run_ranks(1, [&](Communicator& communicator) -> Status {
    RECMILL_ASSIGN_OR_RETURN(const ResolvedRun run, resolve_run(options, posix_files()));
    ThreadPool pool(1);
    RECMILL_ASSIGN_OR_RETURN(Rank rank,
                             make_rank(run, Way::plain, communicator, pool, posix_files()));
    BatchSchedule schedule = run.schedule(0);
    schedule.evaluates = false;
    const auto stage = make_data_stage(run, rank, schedule);
    while (true) {
      RECMILL_ASSIGN_OR_RETURN(auto batch, stage->next());
      if (batch == nullptr) return {};
      add(run.spec, batch->sparse, counts);
      stage->recycle(std::move(batch));
    }
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return counts;
}

void expect_equal(const AccessCounts& counts, const PlainCounts& plain) {
  ASSERT_EQ(counts.tables.size(), plain.size());
  for (size_t t = 0; t < plain.size(); ++t) {
    std::map<int64_t, int64_t> found;
    for (size_t i = 0; i < counts.tables[t].hot_rows.size(); ++i)
      found[counts.tables[t].hot_rows[i]] = counts.tables[t].hot_counts[i];
    EXPECT_EQ(found, plain[t]) << counts.tables[t].table;
  }
}

void expect_what_is_trained(const RunOptions& options) {
  const AccessCounts counts = counted(options, 1, 2);
  expect_equal(counts, trained(options));
  for (const int64_t ranks : {2, 4}) EXPECT_EQ(counted(options, ranks, 3), counts);
}

TEST(CountAccesses, CountsWhatAnEpochOfTrainingLooksUp) {
  expect_what_is_trained(small_run());
}

TEST(CountAccesses, OfDictionariesCountsTheRowsOfTraining) {
  RunOptions options = small_run();
  options.embedding.mapping = preprocess::Mapping::dictionary;
  options.embedding.out_of_range = preprocess::OutOfRange::clamp;
  expect_what_is_trained(options);
}

TEST(CountAccesses, LeavesOutTheNegativesThatTrainingLeavesOut) {
  RunOptions options = small_run();
  options.train.negative_keep = 0.3;
  expect_what_is_trained(options);
  EXPECT_LT(counted(options, 1, 1).samples, 2500);
}

TEST(CountAccesses, OfTheFirstRowsIsOfThose) {
  const AccessCounts some = counted(small_run(), 2, 2, 1000);
  EXPECT_EQ(some.samples, 1000);
  EXPECT_EQ(some.tables[0].lookups, 1000);
  EXPECT_EQ(some.model, counted(small_run(), 1, 1).model);
}

}  // namespace
}  // namespace recmill::train
