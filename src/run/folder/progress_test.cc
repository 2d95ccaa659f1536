// SPDX-License-Identifier: Apache-2.0
#include "run/folder/progress.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

namespace recmill::train {
namespace {

TEST(Progress, of_seconds_shows_no_line_where_there_is_no_terminal) {
  ::testing::internal::CaptureStderr();
  {
    Progress progress(Progress::Style::lines, "training", "samples", 1000);
    progress.show(100, "");
    progress.show(1000, "");
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(Progress, shows_a_rate_and_a_share_that_are_not_zero) {
  ::testing::internal::CaptureStderr();
  {
    Progress progress(Progress::Style::terminal, "training", "samples", 1'000'000);
    progress.show(100, "");
    std::this_thread::sleep_for(std::chrono::milliseconds(110));
    progress.show(100, "");  // nothing is done yet
    progress.show(4100, "");
  }
  const std::string shown = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(shown.find("training: 4.1K of 1.00M samples (0.4 %), "), std::string::npos) << shown;
  EXPECT_EQ(shown.find(" 0/s"), std::string::npos) << shown;
}

}  // namespace
}  // namespace recmill::train
