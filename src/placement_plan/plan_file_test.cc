// SPDX-License-Identifier: Apache-2.0
#include "placement_plan/plan_file.h"

#include <gtest/gtest.h>

#include "base/temporary_folder.h"

namespace recmill {
namespace {

PlacementPlan plan_with_everything() {
  PlacementPlan plan{"test", 3, {}, {}};
  const int at0 = plan.path(FetchPath::at(0, 3)), at2 = plan.path(FetchPath::at(2, 3));
  const int all = plan.path(FetchPath::everywhere(1, 3)), two = plan.path({0, {0, 1, 0}});
  plan.tables.push_back(
      {"items", 100, 32, {}, {{40, at0}, {100, at2}}, {7, 50, 99}, {all, at0, two}});
  plan.tables.push_back({"words", 10, 48, {2, 0}, {}, {}, {}});
  plan.tables.push_back({"codes", 5'000'000'000, 8, {}, {{5'000'000'000, all}}, {}, {}, true});
  return plan;
}

class PlanFile : public ::testing::Test {
 protected:
  /// The error of reading the file once `from` in it is `to`.
  std::string edited(const std::string& from, const std::string& to) {
    std::string text = *read_text(posix_files(), path_);
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from << " is not in\n" << text;
    text.replace(at, from.size(), to);
    const std::string edit = folder_.path() + "/edited.json";
    EXPECT_TRUE(write_atomically(posix_files(), edit, text).ok());
    const std::string rows = *read_text(posix_files(), path_ + ".rows");
    EXPECT_TRUE(write_atomically(posix_files(), edit + ".rows", rows).ok());
    const auto plan = read_plan(posix_files(), edit);
    if (!plan.ok()) code_ = plan.status().code();
    return plan.ok() ? "" : plan.status().message();
  }

  void SetUp() override {
    ASSERT_TRUE(write_plan(posix_files(), path_, plan_with_everything()).ok());
  }

  Status::Code code_ = Status::Code::ok;  // of the last edited file
  TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/plan.json";
};

TEST_F(PlanFile, comes_back_as_it_was_written) {
  const auto plan = read_plan(posix_files(), path_);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(*plan, plan_with_everything());
}

TEST_F(PlanFile, the_same_plan_is_the_same_bytes) {
  const std::string again = folder_.path() + "/again.json";
  ASSERT_TRUE(write_plan(posix_files(), again, *read_plan(posix_files(), path_)).ok());
  EXPECT_EQ(*read_text(posix_files(), again), *read_text(posix_files(), path_));
  EXPECT_EQ(*read_text(posix_files(), again + ".rows"), *read_text(posix_files(), path_ + ".rows"));
}

TEST_F(PlanFile, a_range_may_be_moved) {
  std::string text = *read_text(posix_files(), path_);
  const size_t at = text.find("\"device\": 2", text.find("\"ranges\""));
  text.replace(at, 11, "\"device\": 1, \"copies\": \"all\"");
  ASSERT_TRUE(write_atomically(posix_files(), path_, text).ok());
  const auto plan = read_plan(posix_files(), path_);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  PathCursor cursor(plan->tables[0]);
  EXPECT_EQ(plan->paths[cursor.at(60)], FetchPath::everywhere(1, 3));
}

TEST_F(PlanFile, a_bad_edit_is_refused_with_table_and_row) {
  EXPECT_NE(edited("   40,", "   45,").find("table 'items', row 40: no range has it"),
            std::string::npos);
  EXPECT_NE(edited("     40\n", "     60\n").find("table 'items', row 40: two ranges have it"),
            std::string::npos);
  EXPECT_NE(edited("\"device\": 2", "\"device\": 3").find("device: 3 of 3 devices"),
            std::string::npos);
  EXPECT_NE(edited("\"all\"", "\"some\"").find("copies: only \"all\" is known"), std::string::npos);
  EXPECT_NE(edited("\"listed\": 3", "\"listed\": 4").find("other numbers of listed rows"),
            std::string::npos);
  EXPECT_NE(edited("\"version\": 1", "\"version\": 9").find("version 9"), std::string::npos);
  EXPECT_EQ(code_, Status::Code::bad_request);
  EXPECT_NE(edited("\"ranges\"", "\"rangs\"").find("table 'items': neither ranges nor columns"),
            std::string::npos);
}

TEST_F(PlanFile, a_damaged_byte_of_the_listed_rows_is_named) {
  std::string rows = *read_text(posix_files(), path_ + ".rows");
  rows[2] ^= 1;
  ASSERT_TRUE(write_atomically(posix_files(), path_ + ".rows", rows).ok());
  const auto plan = read_plan(posix_files(), path_);
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.status().message().find("plan.json.rows: damaged"), std::string::npos);
}

}  // namespace
}  // namespace recmill
