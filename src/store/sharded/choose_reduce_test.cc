// SPDX-License-Identifier: Apache-2.0
#include "store/sharded/choose_reduce.h"

#include <gtest/gtest.h>

#include <vector>

namespace recmill::store {
namespace {

CopyReduce choice(double touched, double all, double copies, int ranks, double distinct_share = 0) {
  const std::vector<double> each(ranks, touched);
  const std::vector<int> sums(ranks, 1);
  return choose_reduce(
      {each, sums, all, all * 17 / 18, copies, distinct_share});  // of dimension 16
}

TEST(ChooseReduce, adds_densely_where_ranks_look_most_rows_up) {
  EXPECT_EQ(choice(9.8e6, 1e7, 8, 8), CopyReduce::dense);
  EXPECT_EQ(choice(1e7, 1e7, 8, 8), CopyReduce::dense);
}

TEST(ChooseReduce, goes_by_way_of_the_home_where_several_ranks_look_the_same_rows_up) {
  EXPECT_EQ(choice(3e6, 1e7, 8, 8), CopyReduce::sparse);
}

TEST(ChooseReduce, sends_to_all_holders_at_once_where_rows_are_few_or_everybodys_own) {
  EXPECT_EQ(choice(100, 1e7, 8, 8), CopyReduce::all_gather);
  EXPECT_EQ(choice(1e4, 1e9, 2, 8), CopyReduce::all_gather);
  EXPECT_EQ(choice(0, 0, 1, 1), choice(0, 0, 1, 1));
}

TEST(ChooseReduce, goes_by_what_ranks_have_had_in_common_once_they_know_it) {
  const double apart = 1.0, same = 1.0 / 8;
  EXPECT_EQ(choice(3e5, 1e7, 8, 8), CopyReduce::all_gather);
  EXPECT_EQ(choice(3e5, 1e7, 8, 8, apart), CopyReduce::all_gather);
  EXPECT_EQ(choice(3e5, 1e7, 8, 8, same), CopyReduce::sparse);
  EXPECT_EQ(choice(9.8e6, 1e7, 8, 8, 0.01), choice(9.8e6, 1e7, 8, 8, 0.125)) << "below any rank's";
}

}  // namespace
}  // namespace recmill::store
