// SPDX-License-Identifier: Apache-2.0
#include "base/memory_files.h"

#include <gtest/gtest.h>

namespace recmill {
namespace {

TEST(MemoryFiles, keep_what_is_written_and_travel_as_bytes) {
  MemoryFiles files;
  ASSERT_TRUE(files.make_folder("a/b").ok());
  ASSERT_TRUE(write_atomically(files, "a/b/one", std::string("1")).ok());
  ASSERT_TRUE(write_atomically(files, "a/two", std::string()).ok());
  EXPECT_EQ(*files.list("a"), (std::vector<std::string>{"b", "two"}));
  ASSERT_TRUE(files.rename("a/b", "a/c").ok());
  EXPECT_FALSE(files.exists("a/b"));
  const auto bytes = files.pack();
  const auto back = MemoryFiles::unpack(bytes);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(*read_text(**back, "a/c/one"), "1");
  EXPECT_EQ(*read_text(**back, "a/two"), "");
  EXPECT_EQ((*back)->pack(), bytes);
  ASSERT_TRUE((*back)->remove("a/c").ok());
  EXPECT_EQ(*(*back)->list("a"), std::vector<std::string>{"two"});
  EXPECT_EQ((*back)->open("a/c/one").status().message(), "a/c/one: is not there");
}

TEST(MemoryFiles, refuse_bytes_that_end_too_soon) {
  MemoryFiles files;
  ASSERT_TRUE(write_atomically(files, "one", std::string("content")).ok());
  const auto bytes = files.pack();
  for (size_t size = 1; size < bytes.size(); ++size)
    EXPECT_EQ(MemoryFiles::unpack(std::span(bytes).first(size)).status().message(),
              "packed files are cut short")
        << size;
}

TEST(MemoryFiles, that_are_open_stay_as_they_were) {
  MemoryFiles files;
  ASSERT_TRUE(write_atomically(files, "one", std::string("before")).ok());
  const auto open = files.open("one");
  ASSERT_TRUE(open.ok());
  ASSERT_TRUE(write_atomically(files, "one", std::string("after, and longer")).ok());
  EXPECT_EQ((*open)->size(), 6u);
  EXPECT_EQ(*read_text(files, "one"), "after, and longer");
}

}  // namespace
}  // namespace recmill
