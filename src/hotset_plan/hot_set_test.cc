// SPDX-License-Identifier: Apache-2.0
#include "hotset_plan/hot_set.h"

#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "hotset_plan/hot_set_file.h"

namespace recmill {
namespace {

HotSet some_set() {
  return {"abc",
          1000,
          12,
          {{"items", 5'000'000'000, false, {0, 7, 200, 4'999'999'999}},
           {"days", 7, true, {}},
           {"users", 65, false, {63, 64}},
           {"words", 10, false, {}}}};
}

std::vector<TableSpec> specs() {
  std::vector<TableSpec> specs;
  for (const HotTable& table : some_set().tables)
    specs.push_back({.name = table.table, .rows = table.rows, .dim = 4, .optimizer = {}});
  return specs;
}

TEST(HotSet, counts_its_rows_and_finds_them) {
  HotSet set = some_set();
  EXPECT_EQ(set.hot(), 4 + 7 + 2);
  set.tables[0] = {"items", 300, false, {0, 7, 200, 299}};
  const HotRows rows(set);
  int64_t hot = 0;
  for (int64_t row = 0; row < 300; ++row) hot += rows.is_hot(0, row);
  EXPECT_EQ(hot, 4);
  EXPECT_TRUE(rows.is_hot(0, 299) && rows.is_hot(1, 6) && rows.is_hot(2, 63) && rows.is_hot(2, 64));
  EXPECT_FALSE(rows.is_hot(0, 1) || rows.is_hot(2, 62) || rows.is_hot(3, 0));
}

TEST(HotSet, is_refused_by_table_and_row_where_it_is_none) {
  EXPECT_TRUE(check_hot_set(some_set(), specs()).ok());
  const auto refusal = [](const auto& change) {
    HotSet set = some_set();
    change(set);
    return check_hot_set(set, specs()).message();
  };
  EXPECT_EQ(refusal([](HotSet& set) { set.tables.pop_back(); }),
            "hot set: is of 3 tables; the model has 4");
  EXPECT_EQ(refusal([](HotSet& set) { set.tables[2].rows = 66; }),
            "hot set: table 'users' has 66 rows; the model's has 65");
  EXPECT_EQ(refusal([](HotSet& set) { set.tables[2].table = "user"; }),
            "hot set: table 'user' is where the model has 'users'");
  EXPECT_EQ(refusal([](HotSet& set) {
              set.tables[2].hot_rows = {64, 63};
            }),
            "hot set: table 'users', row 63: rows do not ascend");
  EXPECT_EQ(refusal([](HotSet& set) { set.tables[2].hot_rows = {65}; }),
            "hot set: table 'users', row 65: is not in it");
  EXPECT_EQ(refusal([](HotSet& set) { set.tables[1].hot_rows = {1}; }),
            "hot set: table 'days' is all hot and lists rows");
}

class HotSetFile : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(write_hot_set(posix_files(), path_, some_set()).ok()); }

  /// The error of reading it once `name` has the text.
  std::string error_of(const std::string& name, const std::string& text) {
    EXPECT_TRUE(write_atomically(posix_files(), name, text).ok());
    return read_hot_set(posix_files(), path_).status().message();
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/set.json";
};

TEST_F(HotSetFile, comes_back_and_is_the_same_bytes_again) {
  const auto set = read_hot_set(posix_files(), path_);
  ASSERT_TRUE(set.ok()) << set.status().message();
  EXPECT_EQ(*set, some_set());
  const std::string again = folder_.path() + "/again.json";
  ASSERT_TRUE(write_hot_set(posix_files(), again, *set).ok());
  EXPECT_EQ(*read_text(posix_files(), again), *read_text(posix_files(), path_));
  EXPECT_EQ(*read_text(posix_files(), again + ".rows"), *read_text(posix_files(), path_ + ".rows"));
}

TEST_F(HotSetFile, is_refused_by_name_where_it_is_damaged) {
  const std::string text = *read_text(posix_files(), path_);
  const std::string rows = *read_text(posix_files(), path_ + ".rows");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string edited = text;
    edited.replace(edited.find(from), from.size(), to);
    return error_of(path_, edited);
  };
  EXPECT_EQ(with("\"version\": 1", "\"version\": 2"), path_ + ": version 2; 1 is known here");
  EXPECT_EQ(with("\"listed\": 2", "\"listed\": 66"),
            path_ + ": table 'users': more rows are listed than the table has");
  EXPECT_EQ(with("\"listed\": 2", "\"listed\": 3"), path_ + ".rows: damaged, table 'users'");
  EXPECT_EQ(with("\"listed\": 2", "\"listed\": 1"),
            path_ + ".rows: damaged, more rows than listed");
  EXPECT_EQ(error_of(path_, "{"), path_ + ": is not valid JSON");
  (void)error_of(path_, text);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_NE(error_of(path_ + ".rows", rows.substr(0, i)).find("damaged"), std::string::npos) << i;
    std::string flipped = rows;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    EXPECT_NE(error_of(path_ + ".rows", flipped).find("damaged"), std::string::npos) << i;
  }
}

}  // namespace
}  // namespace recmill
