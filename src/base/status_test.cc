// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>

namespace recmill {
namespace {

TEST(Status, SaysWhere) {
  const Status status = Status::BadRequest("no such column");
  EXPECT_EQ(status.at("a.tsv:17").message(), "a.tsv:17: no such column");
  EXPECT_EQ(status.at("a.tsv:17").code(), Status::Code::bad_request);
  EXPECT_TRUE(Status().at("a.tsv:17").ok());
  EXPECT_EQ(Status().at("a.tsv:17").message(), "");
}

TEST(Result, HasAValueOrAReason) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(3);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result.status().ok());
  EXPECT_EQ(**result, 3);
  EXPECT_EQ(*result->get(), 3);
  const std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 3);
  const Result<int> none = Status::Failed("disk full");
  EXPECT_FALSE(none.ok());
  EXPECT_EQ(none.status().message(), "disk full");
}

TEST(ResultDeathTest, AbortsWithTheReasonWhereAValueIsTakenThatIsNotThere) {
  Result<std::string> none = Status::Failed("disk full");
  const std::string line = "CHECK failed: a Result without a value: disk full";
  EXPECT_DEATH(static_cast<void>(*none), line);
  EXPECT_DEATH(static_cast<void>(none->size()), line);
  EXPECT_DEATH(std::string taken = *std::move(none), line);
  EXPECT_DEATH(Result<int>{Status()}, "made of a Status that is ok");
}

}  // namespace
}  // namespace recmill
