// SPDX-License-Identifier: Apache-2.0
#include "reader/text/behavior_log_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "base/random.h"
#include "base/temporary_folder.h"
#include "reader/open_reader.h"

namespace recmill::reader {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BehaviorLog : public ::testing::Test {
 protected:
  void write(const std::string& text) {
    ASSERT_TRUE(write_atomically(posix_files(), folder_.path() + "/log.csv", text).ok());
    options_.format = DataFormat::behavior_log;
    options_.path = folder_.path();
    options_.cache = "";
    options_.train = {"log.csv"};
  }
  Status read(ColumnBatch& batch, Subset subset = Subset::train) {
    RECMILL_ASSIGN_OR_RETURN(reader_, open_reader(options_, subset, 5, pool_, posix_files()));
    return reader_->read(0, 0, 1 << 20, batch);
  }
  static std::vector<uint64_t> bag(const ColumnBatch& batch, size_t column, int64_t sample) {
    const auto& c = batch.ids[column];
    return {c.ids.begin() + c.offsets[sample], c.ids.begin() + c.offsets[sample + 1]};
  }

  TemporaryFolder folder_;
  ThreadPool pool_{2};
  DataOptions options_;
  std::unique_ptr<Reader> reader_;
};

constexpr const char* kLog =
    "1,10,100,pv,50\n"
    "2,11,100,pv,20\n"
    "1,12,101,buy,30\n"
    "1,13,102,pv,40\n"
    "2,10,100,pv,45\n";

TEST_F(BehaviorLog, makes_a_sample_of_each_event_with_the_history_before_it_in_time) {
  write(kLog);
  options_.behavior_log.negatives = 0;
  ColumnBatch batch;
  ASSERT_TRUE(read(batch).ok());
  ASSERT_EQ(batch.samples, 3);
  EXPECT_THAT(batch.times, ElementsAre(40, 45, 50));
  EXPECT_THAT(batch.groups, ElementsAre(1, 2, 1));
  EXPECT_THAT(batch.labels, ElementsAre(1, 1, 1));
  EXPECT_THAT(batch.ids[0].ids, ElementsAre(13, 10, 10));
  EXPECT_THAT(batch.ids[1].ids, ElementsAre(102, 100, 100));
  EXPECT_THAT(bag(batch, 2, 0), ElementsAre(12));
  EXPECT_THAT(bag(batch, 2, 1), ElementsAre(11));
  EXPECT_THAT(bag(batch, 2, 2), ElementsAre(12, 13));
  EXPECT_THAT(bag(batch, 3, 2), ElementsAre(101, 102));
  options_.behavior_log.sequence_length = 1;
  ASSERT_TRUE(read(batch).ok());
  EXPECT_THAT(bag(batch, 2, 2), ElementsAre(13));
  options_.behavior_log.minimum_history = 2;
  ASSERT_TRUE(read(batch).ok());
  EXPECT_THAT(batch.times, ElementsAre(50));
}

TEST_F(BehaviorLog, negatives_are_other_items_with_their_own_category_and_the_same_history) {
  write(kLog);
  options_.behavior_log.negatives = 40;
  ColumnBatch batch;
  ASSERT_TRUE(read(batch).ok());
  ASSERT_EQ(batch.samples, 3 * 41);
  const std::map<uint64_t, uint64_t> category{{10, 100}, {11, 100}, {12, 101}, {13, 102}};
  std::set<uint64_t> seen;
  for (int64_t i = 0; i < batch.samples; ++i) {
    const int64_t real = i / 41 * 41;
    EXPECT_EQ(batch.labels[i], i == real ? 1 : 0);
    EXPECT_EQ(batch.ids[1].ids[i], category.at(batch.ids[0].ids[i]));
    EXPECT_EQ(bag(batch, 2, i), bag(batch, 2, real));
    if (i == real) continue;
    EXPECT_NE(batch.ids[0].ids[i], batch.ids[0].ids[real]);
    seen.insert(batch.ids[0].ids[i]);
  }
  EXPECT_EQ(seen.size(), category.size());
}

TEST_F(BehaviorLog, passes_over_and_counts_stray_times_and_keeps_the_named_behaviours) {
  write(kLog);
  options_.behavior_log.negatives = 0;
  options_.behavior_log.first_time = 30;
  options_.behavior_log.last_time = 45;
  ColumnBatch batch;
  ASSERT_TRUE(read(batch).ok());
  EXPECT_THAT(batch.times, ElementsAre(40));
  EXPECT_EQ(reader_->counts().passed_over, 2);
  options_.behavior_log.first_time = options_.behavior_log.last_time = 0;
  options_.behavior_log.behaviors = {"pv"};
  ASSERT_TRUE(read(batch).ok());
  EXPECT_THAT(bag(batch, 2, 1), ElementsAre(13)) << "buy is no part of the history";
}

TEST_F(BehaviorLog, a_split_by_time_lets_histories_go_on) {
  write(kLog);
  options_.behavior_log.negatives = 0;
  options_.split.by = SplitKind::time;
  options_.split.eval_fraction = 0.4;
  ColumnBatch train, eval;
  ASSERT_TRUE(read(train).ok());
  ASSERT_TRUE(read(eval, Subset::eval).ok());
  EXPECT_THAT(train.times, ElementsAre(40, 45));
  EXPECT_THAT(eval.times, ElementsAre(50));
  EXPECT_THAT(bag(eval, 2, 0), ElementsAre(12, 13));
}

TEST_F(BehaviorLog, columns_add_the_user_and_what_is_known_at_the_time_of_the_target) {
  write("1,10,100,pv,20\n1,12,101,pv,30\n1,11,100,pv,40\n1,10,100,pv,45\n");
  options_.behavior_log.negatives = 3;
  options_.behavior_log.minimum_history = 0;
  options_.behavior_log.sequence_length = 2;
  options_.behavior_log.columns = {"category_seen", "user", "item_seen", "seconds_since_last",
                                   "history_length"};
  ColumnBatch batch;
  ASSERT_TRUE(read(batch).ok());
  ASSERT_EQ(batch.samples, 4 * 4);
  EXPECT_THAT(reader_->schema().dense,
              ElementsAre("category_seen", "item_seen", "seconds_since_last", "history_length"));
  EXPECT_EQ(reader_->schema().ids.back(), "user");
  for (int64_t i = 0; i < batch.samples; ++i) {
    const int64_t event = i / 4;
    EXPECT_THAT(bag(batch, 4, i), ElementsAre(1));
    const auto items = bag(batch, 2, i), categories = bag(batch, 3, i);
    EXPECT_EQ(batch.dense[0][i], std::ranges::count(categories, batch.ids[1].ids[i]));
    EXPECT_EQ(batch.dense[1][i], std::ranges::count(items, batch.ids[0].ids[i]));
    EXPECT_EQ(batch.dense[3][i], event);
    if (event == 0) {
      EXPECT_TRUE(std::isnan(batch.dense[2][i]));
    } else {
      EXPECT_EQ(batch.dense[2][i], event == 3 ? 5 : 10);
    }
  }
  EXPECT_EQ(batch.dense[0][12], 1) << "11 of category 100 is in the last two events, 10 is not";
  EXPECT_EQ(batch.dense[1][12], 0);
  options_.behavior_log.columns = {"gap"};
  EXPECT_THAT(read(batch).message(), HasSubstr("data.behavior_log.columns: must be user"));
  options_.behavior_log.columns = {"user", "user"};
  EXPECT_THAT(read(batch).message(), HasSubstr("'user' is there twice"));
}

TEST_F(BehaviorLog, a_split_that_leaves_a_side_without_rows_is_an_error_that_names_its_key) {
  write(kLog);
  options_.split.by = SplitKind::time;
  options_.split.boundary = 30;
  ColumnBatch batch;
  EXPECT_EQ(read(batch).message(),
            "data.split.boundary: no row for training: none has a time before 30");
  options_.split.boundary = 60;
  EXPECT_EQ(read(batch, Subset::eval).message(),
            "data.split.boundary: no row for evaluation: none has a time from 60");
  options_.split.boundary = 0;
  options_.split.eval_fraction = 1;
  EXPECT_THAT(read(batch).message(), HasSubstr("data.split.eval_fraction: no row for training"));
  options_.split.by = SplitKind::fraction;
  EXPECT_EQ(read(batch).message(), "data.split.eval_fraction: 1 leaves no rows for training");
}

TEST_F(BehaviorLog, bad_lines_and_too_many_events_are_named) {
  ColumnBatch batch;
  write("1,10,100,pv,50\n1,10,100,pv\n");
  EXPECT_THAT(read(batch).message(), HasSubstr("log.csv:2: has 4 columns instead of 5"));
  write("1,10,100,pv,50\n1,,100,pv,60\n");
  EXPECT_THAT(read(batch).message(), HasSubstr("log.csv:2: column item: no value"));
  write(kLog);
  options_.behavior_log.max_events = 4;
  EXPECT_THAT(read(batch).message(), HasSubstr("max_events = 4"));
}

}  // namespace
}  // namespace recmill::reader
