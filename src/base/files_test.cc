// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/made_folders.h"
#include "base/temporary_folder.h"

namespace recmill {
namespace {

Status append(WritableFile& file, const std::string& text) {
  return file.append(std::as_bytes(std::span(text)));
}

}  // namespace

TEST(Files, write_atomically_leaves_the_new_content_and_nothing_beside) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/a.txt";
  ASSERT_TRUE(write_atomically(posix_files(), path, "one").ok());
  ASSERT_TRUE(write_atomically(posix_files(), path, "two").ok());
  EXPECT_EQ(*read_text(posix_files(), path), "two");
  EXPECT_EQ(*posix_files().list(folder.path()), std::vector<std::string>{"a.txt"});
}

TEST(MadeFolders, that_stay_empty_go_and_those_that_were_there_or_hold_something_stay) {
  TemporaryFolder folder;
  Files& files = posix_files();
  const std::string old = folder.path() + "/old", empty = old + "/a/b", full = old + "/c/d";
  ASSERT_TRUE(files.make_folder(old).ok());
  {
    const auto first = MadeFolders::make(files, empty);
    const auto second = MadeFolders::make_for(files, full + "/e.txt");
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_TRUE(files.is_folder(empty));
    ASSERT_TRUE(write_atomically(files, old + "/c/kept.txt", "text").ok());
  }
  EXPECT_EQ(*files.list(old), std::vector<std::string>{"c"});
  EXPECT_EQ(*files.list(old + "/c"), std::vector<std::string>{"kept.txt"});
  EXPECT_FALSE(MadeFolders::make(files, old + "/c/kept.txt/d").ok());
}

TEST(Files, an_atomic_file_that_is_abandoned_leaves_the_old_content_and_nothing_beside) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/a.txt";
  ASSERT_TRUE(write_atomically(posix_files(), path, "old").ok());
  {
    auto file = AtomicFile::create(posix_files(), path);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(append(**file, "new").ok());
    EXPECT_EQ(*read_text(posix_files(), path), "old");
  }
  EXPECT_EQ(*read_text(posix_files(), path), "old");
  EXPECT_EQ(*posix_files().list(folder.path()), std::vector<std::string>{"a.txt"});
}

TEST(Files, atomic_files_for_one_path_at_a_time_do_not_mix_and_leave_nothing_beside) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/a.txt";
  std::vector<std::unique_ptr<AtomicFile>> open(4);
  for (auto& file : open) file = *AtomicFile::create(posix_files(), path);
  for (int part = 0; part < 3; ++part) {
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(append(*open[i], std::string(5 * (4 - i), static_cast<char>('a' + i))).ok());
    }
  }
  for (const int i : {2, 0, 3}) {
    ASSERT_TRUE(open[i]->close().ok());
    EXPECT_EQ(*read_text(posix_files(), path), std::string(15 * (4 - i), 'a' + i));
  }
  open[1].reset();  // abandoned
  EXPECT_EQ(*read_text(posix_files(), path), std::string(15, 'd'));
  EXPECT_EQ(*posix_files().list(folder.path()), std::vector<std::string>{"a.txt"});
}

TEST(Files, an_atomic_file_is_apart_from_that_of_another_process_and_takes_over_what_it_left) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/a.txt";
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto file = AtomicFile::create(posix_files(), path);
    const bool written = file.ok() && append(**file, "half of what the other").ok();
    (void)!write(ready[1], written ? "y" : "n", 1);
    while (true) pause();
  }
  char answer = 'n';
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_TRUE(write_atomically(posix_files(), path, "one").ok());
  EXPECT_EQ(*posix_files().list(folder.path()), (std::vector<std::string>{"a.txt", "a.txt.tmp"}));
  EXPECT_EQ(*read_text(posix_files(), path + ".tmp"), "half of what the other");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
  ASSERT_TRUE(write_atomically(posix_files(), path, "two").ok());
  EXPECT_EQ(*read_text(posix_files(), path), "two");
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
