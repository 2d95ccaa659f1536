// SPDX-License-Identifier: Apache-2.0
// What every Reader must do. A reader's test includes this once and instantiates the suite with its
// own cases:
//     INSTANTIATE_TEST_SUITE_P(Csv, ReaderContract, ::testing::Values(ReaderCase{"csv", options}),
//                              ReaderCase::name_of);
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "reader/open_reader.h"
#include "reader/row_blocks.h"
#include "reader/testing/samples_of.h"

namespace recmill::reader {

struct ReaderCase {
  std::string name;
  DataOptions options;  // of a data set of some hundred to some thousand rows
  Subset subset = Subset::train;
  bool shuffles = true;  // the reader has a shuffled order

  static std::string name_of(const ::testing::TestParamInfo<ReaderCase>& info) {
    return info.param.name;
  }
};

class ReaderContract : public ::testing::TestWithParam<ReaderCase> {
 protected:
  static constexpr uint64_t kSeed = 17;

  std::unique_ptr<Reader> open(const DataOptions& options, uint64_t seed = kSeed) {
    auto reader = open_reader(options, GetParam().subset, seed, pool_, posix_files());
    EXPECT_TRUE(reader.ok()) << reader.status().message();
    return reader.ok() ? *std::move(reader) : nullptr;
  }
  DataOptions shuffled(int64_t window) const {
    DataOptions options = GetParam().options;
    options.shuffle = {ShuffleKind::window, window};
    return options;
  }
  static std::vector<std::string> read(Reader& reader, int64_t epoch, int64_t first,
                                       int64_t count) {
    ColumnBatch batch;
    const Status status = reader.read(epoch, first, count, batch);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(batch.first, first);
    return samples_of(reader.schema(), batch);
  }
  static std::vector<std::string> read_epoch(Reader& reader, int64_t epoch, int64_t chunk) {
    std::vector<std::string> all;
    while (true) {
      const auto some = read(reader, epoch, static_cast<int64_t>(all.size()), chunk);
      if (some.empty()) return all;
      all.insert(all.end(), some.begin(), some.end());
    }
  }
  static std::multiset<std::string> as_set(const std::vector<std::string>& rows) {
    return {rows.begin(), rows.end()};
  }

  ThreadPool pool_{2};
};

TEST_P(ReaderContract, rows_is_what_an_epoch_hands_out_and_nothing_follows) {
  auto reader = open(GetParam().options);
  const auto rows = reader->rows();
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  EXPECT_GT(*rows, 0);
  EXPECT_EQ(read_epoch(*reader, 0, 1000).size(), static_cast<size_t>(*rows));
  EXPECT_EQ(reader->counts().rows, *rows);
  EXPECT_TRUE(read(*reader, 0, *rows, 10).empty());
  EXPECT_TRUE(read(*reader, 0, *rows + 5, 10).empty());
  EXPECT_TRUE(read(*reader, 0, 0, 0).empty());
  EXPECT_EQ(read(*reader, 0, *rows - 1, 10).size(), 1u);
}

TEST_P(ReaderContract, rows_may_be_asked_for_while_another_thread_reads) {
  const auto expected = read(*open(GetParam().options), 0, 3, 20);
  for (int time = 0; time < 20; ++time) {
    auto reader = open(GetParam().options);
    std::vector<std::string> rows;
    std::thread reading([&] { rows = read(*reader, 0, 3, 20); });
    EXPECT_GT(*reader->rows(), 0);
    reading.join();
    EXPECT_EQ(rows, expected);
  }
}

TEST_P(ReaderContract, size_of_chunks_does_not_matter) {
  for (const DataOptions& options : {GetParam().options, shuffled(100)}) {
    auto reader = open(options);
    const auto all = read_epoch(*reader, 0, 1 << 20);
    for (const int64_t chunk : {13, 99, 100, 101, 4096}) {
      EXPECT_EQ(read_epoch(*open(options), 0, chunk), all) << chunk;
    }
  }
}

TEST_P(ReaderContract, seeks_give_what_sequential_reading_gives) {
  for (const DataOptions& options : {GetParam().options, shuffled(64)}) {
    auto reader = open(options);
    const auto all = read_epoch(*reader, 0, 512);
    const Random random(kSeed, Purpose::test);
    for (uint64_t i = 0; i < 25; ++i) {
      const auto first = static_cast<int64_t>(random.below(all.size(), i, 0));
      const auto count = static_cast<int64_t>(random.below(200, i, 1));
      const auto end = std::min<int64_t>(first + count, all.size());
      const std::vector<std::string> expected(all.begin() + first, all.begin() + end);
      EXPECT_EQ(read(*reader, 0, first, count), expected) << first << " " << count;
    }
    EXPECT_EQ(read(*open(options), 0, 77, 50), read(*reader, 0, 77, 50)) << "a new reader resumes";
  }
}

TEST_P(ReaderContract, number_of_threads_and_read_ahead_do_not_matter) {
  auto expected = read_epoch(*open(shuffled(128)), 1, 300);
  for (const int threads : {1, 3}) {
    for (const int64_t prefetch : {1, 4}) {
      ThreadPool pool(threads);
      DataOptions options = shuffled(128);
      options.prefetch = prefetch;
      auto reader = open_reader(options, GetParam().subset, kSeed, pool, posix_files());
      ASSERT_TRUE(reader.ok()) << reader.status().message();
      EXPECT_EQ(read_epoch(**reader, 1, 300), expected) << threads << " " << prefetch;
    }
  }
}

TEST_P(ReaderContract, epochs_are_permutations_of_the_same_rows_and_seeds_are_orders) {
  auto plain = open(GetParam().options);
  const auto in_order = read_epoch(*plain, 0, 512);
  EXPECT_EQ(read_epoch(*plain, 3, 512), in_order);
  if (!GetParam().shuffles) return;
  auto reader = open(shuffled(128));
  const auto first = read_epoch(*reader, 0, 512), second = read_epoch(*reader, 1, 512);
  EXPECT_NE(first, in_order);
  EXPECT_NE(first, second);
  EXPECT_EQ(read_epoch(*reader, 0, 512), first);
  EXPECT_NE(read_epoch(*open(shuffled(128), kSeed + 1), 0, 512), first);
  EXPECT_EQ(as_set(first), as_set(in_order));
  EXPECT_EQ(as_set(second), as_set(in_order));
}

TEST_P(ReaderContract, row_limit_keeps_the_first_rows) {
  const auto all = read_epoch(*open(GetParam().options), 0, 512);
  for (const int64_t limit : {1, 57, 128}) {
    DataOptions options = GetParam().options;
    options.rows = limit;
    const std::vector<std::string> expected(all.begin(), all.begin() + limit);
    auto reader = open(options);
    EXPECT_EQ(read_epoch(*reader, 0, 50), expected);
    EXPECT_EQ(*reader->rows(), limit);
    DataOptions mixed = shuffled(32);
    mixed.rows = limit;
    EXPECT_EQ(as_set(read_epoch(*open(mixed), 2, 50)), as_set(expected));
  }
  DataOptions options = GetParam().options;
  options.rows = static_cast<int64_t>(all.size()) + 100;
  EXPECT_EQ(read_epoch(*open(options), 0, 512), all) << "a limit beyond the data is none";
}

TEST_P(ReaderContract, blocks_that_are_read_alone_have_the_rows_of_the_whole) {
  DataOptions options = GetParam().options;
  options.prefetch = 0;
  const auto all = read_epoch(*open(options), 0, 512);
  for (const int64_t taken : {1, 2}) {                 // of three blocks
    options.shuffle.window = taken == 1 ? 30 : 65536;  // slices of row groups, or whole ones
    auto reader = open(options);
    const auto starts = reader->starts();
    ASSERT_TRUE(starts.ok()) << starts.status().message();
    const auto bounds = block_bounds(std::ssize(all), *starts, 40);
    EXPECT_EQ(bounds.back(), std::ssize(all));
    std::vector<RowRange> ranges;
    std::vector<std::string> expected;
    for (size_t b = 0; b + 1 < bounds.size(); ++b) {
      if (static_cast<int64_t>(b % 3) >= taken) continue;
      ranges.push_back({bounds[b], bounds[b + 1] - bounds[b]});
      expected.insert(expected.end(), all.begin() + bounds[b], all.begin() + bounds[b + 1]);
    }
    auto some = only_rows(std::move(reader), ranges);
    ASSERT_TRUE(some.ok()) << some.status().message();
    EXPECT_EQ(*(*some)->rows(), std::ssize(expected));
    EXPECT_EQ(read_epoch(**some, 0, 33), expected);
    EXPECT_EQ(read_epoch(**some, 0, 4096), expected);
    EXPECT_EQ(read(**some, 0, std::ssize(expected) - 1, 10).back(), expected.back());
  }
}

}  // namespace recmill::reader
