// SPDX-License-Identifier: Apache-2.0
#include "run/hotset/run_hot_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "comm/threads.h"
#include "hotset_plan/hot_set_file.h"
#include "run/hotset/count_hot_inputs.h"
#include "run/testing/bags_run.h"

namespace recmill::train {
namespace {

RunOptions small_run(int64_t ranks = 1, int64_t threads = 1) {
  RunOptions options = bags_run(3000);
  options.train.slices = 8;
  options.train.ranks = ranks;
  options.train.threads = threads;
  options.hotset.bytes = 1 << 20;
  return options;
}

Result<std::shared_ptr<const HotSet>> found(const RunOptions& options) {
  ThreadsWorld world;
  RECMILL_ASSIGN_OR_RETURN(const ResolvedRun run, resolve_run(options, world, posix_files()));
  return find_hot_set(run, 0, {}, world, posix_files(), Progress::Style::silent);
}

HotSet set_of(const RunOptions& options) {
  const auto set = found(options);
  EXPECT_TRUE(set.ok()) << set.status().message();
  return set.ok() ? **set : HotSet();
}

TEST(RunHotSet, is_the_same_at_any_number_of_ranks_and_threads) {
  const auto run = resolve_run(small_run(), posix_files());
  ASSERT_TRUE(run.ok()) << run.status().message();
  const auto census = count_hot_inputs(*run, 0, posix_files(), Progress::Style::silent);
  ASSERT_TRUE(census.ok()) << census.status().message();
  const HotSet& expected = (*census)->set;
  EXPECT_GT(expected.hot(), 0);
  EXPECT_EQ(expected.inputs, 3000);
  for (const int64_t ranks : {1, 2, 4})
    for (const int64_t threads : {1, 3}) EXPECT_EQ(set_of(small_run(ranks, threads)), expected);
}

TEST(RunHotSet, is_that_of_a_file_where_one_is_named) {
  TemporaryFolder folder;
  RunOptions options = small_run();
  const HotSet set = set_of(options);
  options.hotset.plan = folder.path() + "/set.json";
  const auto refusal = [&] { return found(options).status().message(); };
  EXPECT_THAT(refusal(), ::testing::HasSubstr("hotset.plan: there is no file "));
  ASSERT_TRUE(write_hot_set(posix_files(), options.hotset.plan, set).ok());
  EXPECT_EQ(set_of(options), set);
  HotSet other = set;
  other.model = "of others";
  ASSERT_TRUE(write_hot_set(posix_files(), options.hotset.plan, other).ok());
  EXPECT_THAT(refusal(), ::testing::HasSubstr("set.json is of other columns"));
  other.tables.pop_back();
  ASSERT_TRUE(write_hot_set(posix_files(), options.hotset.plan, other).ok());
  EXPECT_THAT(refusal(), ::testing::StartsWith("hotset.plan: hot set: is of "));
}

}  // namespace
}  // namespace recmill::train
