// SPDX-License-Identifier: Apache-2.0
#include "base/paths.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace recmill {
namespace {

TEST(Paths, are_whole_from_the_root_on) {
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(whole_path("."), here);
  EXPECT_EQ(whole_path(""), here);
  EXPECT_EQ(whole_path("a/../b/"), here + "/b");
  EXPECT_EQ(whole_path("/a/./b"), "/a/b");
  EXPECT_EQ(whole_path("/"), "/");
}

TEST(Paths, are_seen_from_a_folder_unless_they_are_whole) {
  EXPECT_EQ(path_from("/w", "a/b"), "/w/a/b");
  EXPECT_EQ(path_from("/w", "/a"), "/a");
  EXPECT_EQ(path_from("/w", ""), "");
  EXPECT_EQ(path_from("", "a"), "a");
  EXPECT_EQ(path_below("/w", "/w/a/b"), "a/b");
  EXPECT_EQ(path_below("/w", "/wa"), "/wa");
  EXPECT_EQ(path_below("/w", "a"), "a");
}

}  // namespace
}  // namespace recmill
