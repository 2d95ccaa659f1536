// SPDX-License-Identifier: Apache-2.0
#include "placement_plan/placement_plan.h"

#include <gtest/gtest.h>

#include <functional>

namespace recmill {
namespace {

std::vector<TableSpec> two_tables() {
  TableSpec items, words;
  items.name = "items", items.rows = 100, items.dim = 32;
  words.name = "words", words.rows = 10, words.dim = 48;
  return {items, words};
}

PlacementPlan plan_of_three() {
  PlacementPlan plan{"test", 3, {}, {}};
  const int at0 = plan.path(FetchPath::at(0, 3)), at2 = plan.path(FetchPath::at(2, 3));
  const int all = plan.path(FetchPath::everywhere(1, 3));
  plan.tables.push_back({"items", 100, 32, {}, {{40, at0}, {100, at2}}, {7, 50}, {all, at0}});
  plan.tables.push_back({"words", 10, 48, {2, 0}, {}, {}, {}});
  return plan;
}

TEST(PlacementPlan, keeps_each_path_once) {
  PlacementPlan plan = plan_of_three();
  EXPECT_EQ(plan.paths.size(), 3u);
  EXPECT_EQ(plan.path(FetchPath::everywhere(1, 3)), 2);
  EXPECT_EQ(plan.paths.size(), 3u);
  EXPECT_EQ(plan.paths[2].copies(), 3);
  EXPECT_EQ(plan.paths[0].copies(), 1);
}

TEST(PlacementPlan, gives_the_path_of_each_row) {
  const PlacementPlan plan = plan_of_three();
  PathCursor cursor(plan.tables[0]);
  for (int64_t row = 0; row < 100; ++row)
    EXPECT_EQ(cursor.at(row), row == 7 ? 2 : row == 50 ? 0 : row < 40 ? 0 : 1) << row;
}

struct BadPlan {
  std::string what;  // the error must say
  std::function<void(PlacementPlan&)> spoil;
};

TEST(PlacementPlan, a_bad_plan_is_refused_with_table_and_row) {
  EXPECT_TRUE(check_plan(plan_of_three(), two_tables(), 3).ok());
  const std::vector<BadPlan> plans{
      {"the plan is for 3 devices; there are 4", nullptr},
      {"table 'things': the model has table 'items' in its place",
       [](auto& p) { p.tables[0].table = "things"; }},
      {"table 'items': the plan is for 99 rows of 32", [](auto& p) { p.tables[0].rows = 99; }},
      {"table 'items': row 30: ranges overlap or are empty",
       [](auto& p) {
         p.tables[0].runs = {{40, 0}, {30, 1}, {100, 0}};
       }},
      {"table 'items': row 90: no range has it", [](auto& p) { p.tables[0].runs[1].end = 90; }},
      {"table 'items': row 100: a range goes beyond",
       [](auto& p) { p.tables[0].runs[1].end = 101; }},
      {"table 'items': row 40: path 3 of 3", [](auto& p) { p.tables[0].runs[1].path = 3; }},
      {"table 'items': row 7: listed twice", [](auto& p) { p.tables[0].listed_rows[1] = 7; }},
      {"table 'items': row 100: the table has 100 rows",
       [](auto& p) { p.tables[0].listed_rows[1] = 100; }},
      {"table 'items': row 50: path -1 of 3", [](auto& p) { p.tables[0].listed_paths[1] = -1; }},
      {"table 'words': device 0 has two pieces",
       [](auto& p) {
         p.tables[1].column_devices = {0, 0};
       }},
      {"table 'words': 4 pieces of columns, but dimension 48 has 3 groups",
       [](auto& p) {
         p.tables[1].column_devices = {0, 1, 2, 3};
       }},
      {"path 1: its home, device 0, has no copy", [](auto& p) { p.paths[1].home = 0; }},
      {"path 0: device 1 fetches from device 2, which has no copy",
       [](auto& p) {
         p.paths[0].from = {0, 2, 0};
       }},
      {"the plan is for 1 tables", [](auto& p) { p.tables.pop_back(); }},
  };
  for (const BadPlan& bad : plans) {
    PlacementPlan plan = plan_of_three();
    if (bad.spoil) bad.spoil(plan);
    const Status status = check_plan(plan, two_tables(), bad.spoil ? 3 : 4);
    EXPECT_EQ(status.code(), Status::Code::bad_request);
    EXPECT_NE(status.message().find(bad.what), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace recmill
