// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/background_writer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <vector>

namespace recmill::checkpoint {

TEST(BackgroundWriter, runs_work_in_order_while_the_caller_goes_on) {
  BackgroundWriter background(1000);
  std::latch may_go(1);
  std::vector<int> order;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(background
                    .submit(10,
                            [&, i] {
                              may_go.wait();
                              order.push_back(i);
                              return Status();
                            })
                    .ok());
  }
  EXPECT_TRUE(order.empty());  // the caller is here before any work is done
  may_go.count_down();
  ASSERT_TRUE(background.wait().ok());
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(BackgroundWriter, never_holds_more_than_the_limit_or_one_piece) {
  BackgroundWriter background(100);
  std::atomic<int64_t> held{0}, most{0};
  for (int i = 0; i < 200; ++i) {
    const int64_t bytes = i % 7 == 0 ? 150 : 40;
    ASSERT_TRUE(background
                    .submit(bytes,
                            [&, bytes] {
                              held -= bytes;
                              return Status();
                            })
                    .ok());
    held += bytes;
    most = std::max(most.load(), held.load());
  }
  ASSERT_TRUE(background.wait().ok());
  EXPECT_EQ(held.load(), 0);
  EXPECT_LE(most.load(), 150);
}

TEST(BackgroundWriter, an_error_discards_what_follows_is_reported_once_and_then_forgotten) {
  BackgroundWriter background(1 << 20);
  std::latch may_go(1);
  bool ran = false;
  ASSERT_TRUE(background
                  .submit(1,
                          [&] {
                            may_go.wait();
                            return Status::Failed("disk full");
                          })
                  .ok());
  ASSERT_TRUE(background
                  .submit(1,
                          [&] {
                            ran = true;
                            return Status();
                          })
                  .ok());
  may_go.count_down();
  EXPECT_EQ(background.wait().message(), "disk full");
  EXPECT_FALSE(ran);
  ASSERT_TRUE(background
                  .submit(1,
                          [&] {
                            ran = true;
                            return Status();
                          })
                  .ok());
  EXPECT_TRUE(background.wait().ok());
  EXPECT_TRUE(ran);
}

}  // namespace recmill::checkpoint
