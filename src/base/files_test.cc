// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include <gtest/gtest.h>

#include "base/temporary_folder.h"

namespace recmill {

TEST(Files, write_atomically_leaves_the_new_content_and_nothing_beside) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/a.txt";
  ASSERT_TRUE(write_atomically(posix_files(), path, "one").ok());
  ASSERT_TRUE(write_atomically(posix_files(), path, "two").ok());
  EXPECT_EQ(*read_text(posix_files(), path), "two");
  EXPECT_EQ(*posix_files().list(folder.path()), std::vector<std::string>{"a.txt"});
}

TEST(Files, an_atomic_file_that_is_abandoned_leaves_the_old_content_and_nothing_beside) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/a.txt";
  ASSERT_TRUE(write_atomically(posix_files(), path, "old").ok());
  {
    auto file = AtomicFile::create(posix_files(), path);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->append(std::as_bytes(std::span("new", 3))).ok());
    EXPECT_EQ(*read_text(posix_files(), path), "old");
  }
  EXPECT_EQ(*read_text(posix_files(), path), "old");
  EXPECT_EQ(*posix_files().list(folder.path()), std::vector<std::string>{"a.txt"});
}

TEST(Files, errors_name_the_path) {
  const auto missing = posix_files().open("no/such/file");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.status().message().find("no/such/file"), std::string::npos);
  TemporaryFolder folder;
  const auto opened = posix_files().open(folder.path());
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.status().message().find("is a folder"), std::string::npos);
}

TEST(Glob, lists_matches_in_order_and_refuses_none) {
  TemporaryFolder folder;
  for (const char* name : {"part-1", "part-0", "other"}) {
    ASSERT_TRUE(write_atomically(posix_files(), folder.path() + "/" + name, "x").ok());
  }
  EXPECT_EQ(*glob(folder.path() + "/part-*"),
            (std::vector<std::string>{folder.path() + "/part-0", folder.path() + "/part-1"}));
  const auto none = glob(folder.path() + "/nothing*");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), Status::Code::bad_request);
}

}  // namespace recmill
