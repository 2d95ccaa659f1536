// SPDX-License-Identifier: Apache-2.0
#include "store/cached/home_steps.h"

#include <gtest/gtest.h>

namespace recmill::store {
namespace {

TEST(HomeSteps, ascend_over_steps_cuts_and_starts_however_often_ranks_put) {
  int64_t begin = table::RowHome::kNoFence;
  for (int start = 0; start < 3; ++start) {
    HomeSteps one(begin), other(begin);
    int64_t last = begin;
    const auto ascends = [&](int64_t step) {
      EXPECT_GT(step, last);
      last = step;
    };
    ascends(one.next_put());
    EXPECT_EQ(one.next_cut(), other.next_cut());
    for (int64_t step = 0; step < 5; ++step) {
      EXPECT_EQ(one.of(step), other.of(step));
      ascends(one.left(step));
      other.left(step);
      for (int cut = 0; cut < 3; ++cut) {
        for (int put = 0; put < step; ++put) ascends(one.next_put());
        const int64_t at = one.next_cut();
        EXPECT_EQ(at, other.next_cut());
        ascends(at);
      }
    }
    begin = last;
    EXPECT_EQ(one.of(-1), table::RowHome::kNoFence);
  }
}

}  // namespace
}  // namespace recmill::store
