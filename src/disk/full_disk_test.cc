// SPDX-License-Identifier: Apache-2.0
// A database whose disk takes not one byte more, in a process of its own.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/temporary_folder.h"
#include "disk/rocksdb/rocksdb_library.h"

namespace recmill::disk {
namespace {

/// Ends with the number of writes that were taken, or that did not name the path.
[[noreturn]] void write_where_nothing_fits(const std::string& path) {
  auto database = *(*rocksdb_databases())->open(path, 1 << 20, /*keeps=*/true);
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_FSIZE, &none);
  int wrong = 0;
  for (int i = 0; i < 5; ++i) {
    const std::string value(100'000, 'v');
    const Change change{Space::rows, "key" + std::to_string(i), value};
    const Status status = database->write({&change, 1}, /*syncs=*/i % 2 == 1);
    wrong += status.ok() || !status.message().starts_with(path + ": ") ? 1 : 0;
  }
  database.reset();
  std::_Exit(wrong);
}

TEST(FullDiskDeathTest, fails_each_write_and_the_process_lives_on) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TemporaryFolder folder;
  EXPECT_EXIT(write_where_nothing_fits(folder.path() + "/rows"), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace recmill::disk
