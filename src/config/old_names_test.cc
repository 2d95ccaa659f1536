// SPDX-License-Identifier: Apache-2.0
#include "config/old_names.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/temporary_folder.h"
#include "config/run_config.h"

namespace recmill::config {
namespace {

class OldNames : public ::testing::Test {
 protected:
  std::string file(const std::string& train) {
    const std::string path = folder_.path() + "/a.toml";
    EXPECT_TRUE(write_atomically(posix_files(), path, "[train]\n" + train).ok());
    return path;
  }
  TemporaryFolder folder_;
};

TEST_F(OldNames, are_read_as_the_present_ones_in_files_and_in_sets) {
  const auto now = load_run_config(file("slices = 4\n"), {});
  ASSERT_TRUE(now.ok()) << now.status().message();
  EXPECT_EQ(now->options.train.slices, 4);
  const auto old = load_run_config(file("shards = 4\n"), {});
  ASSERT_TRUE(old.ok()) << old.status().message();
  EXPECT_EQ(to_toml(old->options), to_toml(now->options));
  const auto set = load_run_config(file("slices = 4\n"), {"train.shards=2"});
  ASSERT_TRUE(set.ok()) << set.status().message();
  EXPECT_EQ(set->options.train.slices, 2);
  const auto of_run = options_of_text("[train]\nshards = 4\n", "config.toml");
  ASSERT_TRUE(of_run.ok()) << of_run.status().message();
  EXPECT_EQ(of_run->train.slices, 4);
}

TEST_F(OldNames, are_located_where_they_are_and_refused_beside_the_present_ones) {
  const auto wrong = load_run_config(file("epochs = 1\nshards = 'four'\n"), {});
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.status().message().find("a.toml:3: train.slices must be an integer, not text"),
            std::string::npos)
      << wrong.status().message();
  const std::string path = file("shards = 4\nslices = 4\n");
  const auto both = load_run_config(path, {});
  ASSERT_FALSE(both.ok());
  EXPECT_EQ(
      both.status().message(),
      path + ":2: train.shards: is the old name of train.slices, which is given too; remove it");
}

}  // namespace
}  // namespace recmill::config
