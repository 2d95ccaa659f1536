// SPDX-License-Identifier: Apache-2.0
#include "lookahead/moved_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "lookahead/shared_oracle.h"
#include "lookahead/testing/streams.h"

namespace recmill::lookahead {
namespace {

using testing::Stream;

std::vector<StepUses> uses_of(int64_t ranks) {
  std::vector<Stream> of_ranks;
  for (int64_t rank = 0; rank < ranks; ++rank)
    of_ranks.push_back(testing::skewed_stream(rank, ranks));
  std::vector<StepUses> uses;
  for (int64_t step = 0; step < testing::kSkewedSteps; ++step) {
    std::vector<std::vector<int64_t>> rows;
    for (const Stream& stream : of_ranks) rows.push_back(stream[step]);
    uses.push_back(merge_uses(rows));
  }
  return uses;
}

const DeciderOf kDecider = [](int64_t row) {
  return static_cast<int32_t>(split_mix(static_cast<uint64_t>(row)) % 4);
};

MovedRowsCounter count(CacheDesign design, const std::vector<StepUses>& uses, int ranks,
                       int64_t lookahead) {
  const DeciderOf decider = ranks == 1 ? [](int64_t) { return 0; } : kDecider;
  SharedOracle oracle({.lookahead = lookahead, .prefetch = 4, .ranks = ranks, .design = design},
                      decider);
  MovedRowsCounter counter(ranks, decider);
  size_t seen = 0;
  for (size_t decided = 0; decided < uses.size(); ++decided) {
    while (!oracle.ready()) {
      if (seen < uses.size()) {
        oracle.see(uses[seen++]);
      } else {
        oracle.end();
      }
    }
    const auto decision = oracle.decide();
    EXPECT_TRUE(decision.ok()) << decision.status().message();
    counter.add(uses[decided], *decision);
  }
  return counter;
}

TEST(StepUses, have_each_row_once_and_who_uses_it) {
  const std::vector<std::vector<int64_t>> rows{{1, 5}, {}, {0, 5, 9}};
  const StepUses uses = merge_uses(rows);
  EXPECT_EQ(uses.rows, (std::vector<int64_t>{0, 1, 5, 9}));
  const std::vector<std::vector<int32_t>> users{{2}, {0}, {0, 2}, {2}};
  for (int64_t i = 0; i < uses.count(); ++i)
    EXPECT_TRUE(std::ranges::equal(uses.users(i), users[i])) << i;
  EXPECT_EQ(merge_uses({}).count(), 0);
}

TEST(MovedRows, of_four_ranks_are_those_that_were_counted_otherwise) {
  const auto uses = uses_of(4);
  int64_t without = 0, of_one = 0;
  for (const StepUses& step : uses) {
    without += moved_without_cache(step).total();
    for (int64_t i = 0; i < step.count(); ++i) of_one += step.users(i).size() == 1 ? 1 : 0;
  }
  EXPECT_EQ(without, 53'922);
  EXPECT_EQ(of_one, 17'784);
  const auto forward = count(CacheDesign::forward, uses, 4, 16);
  EXPECT_EQ(forward.moved().fetched, 6'135);
  EXPECT_EQ(forward.moved().written_back, 6'135);
  EXPECT_LE(forward.moved().total(), 33'600);
  const auto& sent = forward.sent();
  EXPECT_LE(*std::ranges::max_element(sent),
            1.05 * std::accumulate(sent.begin(), sent.end(), 0.0) / 4);
  EXPECT_LE(count(CacheDesign::lrpp, uses, 4, 16).moved().total(), 104'790);
}

TEST(MovedRows, cross_no_rank_where_there_is_one) {
  const auto uses = uses_of(1);
  for (const auto& [design, name] : EnumNames<CacheDesign>::names)
    EXPECT_EQ(count(design, uses, 1, 16).moved(),
              (MovedRows{.fetched = 6'135, .written_back = 6'135}))
        << name;
}

/// What `forward` means, row by row: over the steps of one stay in a slot.
TEST(MovedRows, of_forward_are_a_sum_and_weights_for_each_other_user_and_a_row_for_each_new_owner) {
  const auto uses = uses_of(4);
  const auto moved = count(CacheDesign::forward, uses, 4, 16).moved();
  std::map<int64_t, std::pair<int64_t, std::set<int32_t>>> last;  // step and users
  int64_t others = 0, no_user_is_left = 0, returns = 0;
  for (int64_t step = 0; step < testing::kSkewedSteps; ++step) {
    for (int64_t i = 0; i < uses[step].count(); ++i) {
      const auto users = uses[step].users(i);
      others += std::ssize(users) - 1;
      const std::set<int32_t> now(users.begin(), users.end());
      const auto before = last.find(uses[step].rows[i]);
      if (before != last.end() && step - before->second.first <= 16) {
        ++returns;
        if (std::ranges::none_of(before->second.second,
                                 [&](int32_t rank) { return now.contains(rank); }))
          ++no_user_is_left;
      }
      last[uses[step].rows[i]] = {step, now};
    }
  }
  EXPECT_EQ(moved.gradients, others);
  EXPECT_EQ(moved.weights, others);
  EXPECT_GE(moved.handed_over, no_user_is_left);
  EXPECT_LE(moved.handed_over, returns);
}

}  // namespace
}  // namespace recmill::lookahead
