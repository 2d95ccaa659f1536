// SPDX-License-Identifier: Apache-2.0
#include "stats/access_counts_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/faulty_files.h"
#include "stats/testing/drawn_lookups.h"

namespace recmill::stats {
namespace {

using testing::HasSubstr;

TEST(AccessCountsFile, IsReadAsItWasWritten) {
  ThreadPool pool(2);
  const AccessCounter counter = counted(0, 60'000, 7001, 2);
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
  ThreadPool pool(1);
  FaultyFiles files;
  ASSERT_TRUE(write_counts(counts, "x.counts", files, pool).ok());
  const auto read = read_counts("x.counts", "", files, pool);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, counts);
}

TEST(AccessCountsFile, NamesTheFileAndWhatIsWrongWithIt) {
  ThreadPool pool(1);
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
  EXPECT_EQ(message(), "x.counts: is not a file of access counts");
}

TEST(AccessCountsFile, ADamagedByteNeverPasses) {
  ThreadPool pool(1);
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
  ThreadPool pool(1);
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
