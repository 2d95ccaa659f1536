// SPDX-License-Identifier: Apache-2.0
// Runs that are opened from elsewhere than where they were trained.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "cli/testing/program.h"

namespace recmill::cli {
namespace {

class BaseFolder : public Program {
 protected:
  void SetUp() override {
    for (const char* folder : {"work/data", "elsewhere/deep"})
      std::filesystem::create_directories(path(folder));
    std::string rows = "y,d,i\n";
    for (int row = 0; row < 40; ++row)
      rows += std::to_string(row % 3 == 0) + "," + std::to_string(row % 7) + "," +
              std::to_string(row % 5) + "\n";
    write("work/data/train.csv", rows);
    write("work/data/new.csv", rows.substr(0, rows.find('\n', 40) + 1));
    write("work/a.toml", R"([data]
format = 'csv'
path = 'data'
train = ['train.csv']
split.by = 'fraction'
columns = [{name = 'y', role = 'label'}, {name = 'd', role = 'dense'}, {name = 'i', role = 'id'}]
[embedding]
rows = 20
dim = 2
store = 'placed'
mapping = 'dictionary'
[model]
kind = 'mlp'
top = [1]
[train]
batch_size = 4
slices = 4
threads = 1
[placement]
planner = 'oper'
count_samples = 100
)");
    where_ = "work";
    const Outcome counted = run({"stats", "a.toml", "--counts", "rows.counts", "--quiet"});
    ASSERT_EQ(counted.status, 0) << counted.err;
    const Outcome planned = run({"plan", "placement", "a.toml", "--out", "plan.json"});
    ASSERT_EQ(planned.status, 0) << planned.err;
    const Outcome trained =
        run({"train", "a.toml", "--quiet", "--set", "placement.counts=rows.counts"});
    ASSERT_EQ(trained.status, 0) << trained.err;
  }

  void expect_refused(const std::vector<std::string>& arguments, const std::string& what) {
    const Outcome refused = run(arguments);
    EXPECT_EQ(refused.status, 2) << refused.err;
    EXPECT_NE(refused.err.find(what), std::string::npos) << refused.err;
  }
};

TEST_F(BaseFolder, of_a_run_is_that_of_its_data_counts_cache_and_checkpoints) {
  const Json there = run_json({"eval", "runs/a", "--quiet"});
  ASSERT_TRUE(there.contains("log_loss"));
  for (const char* where : {"elsewhere", "elsewhere/deep", "work/runs", "work/runs/a"}) {
    where_ = where;
    for (const std::string& run_folder : {path("work/runs/a"), path("work/runs/a/")}) {
      Json here = run_json({"eval", run_folder, "--quiet"});
      EXPECT_TRUE(here["checkpoint"].get<std::string>().starts_with(path("work/runs/a/")));
      here["checkpoint"] = there["checkpoint"];
      EXPECT_EQ(here, there) << where;
    }
    EXPECT_FALSE(posix_files().exists(path(where_ + "/.cache")));
  }
  where_ = "work/runs/a";
  EXPECT_EQ(run_json({"eval", ".", "--quiet"})["log_loss"], there["log_loss"]);
}

TEST_F(BaseFolder, is_not_that_of_what_is_set_when_a_run_is_opened) {
  where_ = "elsewhere";
  std::filesystem::copy(path("work/data/new.csv"), path("elsewhere/own.csv"));
  std::filesystem::copy(path("work/plan.json"), path("elsewhere/own.json"));
  const std::vector<std::string> eval{"eval", path("work/runs/a"), "--quiet"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), eval.begin(), eval.end());
    return more;
  };
  const Json planned = run_json(with({"--set", "placement.plan=own.json"}));
  EXPECT_EQ(planned["log_loss"], run_json(eval)["log_loss"]);
  const auto rows = run_json(with({"--rows", "own.csv"}))["scored"];
  EXPECT_GT(rows, 0);
  EXPECT_EQ(run_json(with({"--set", "data.path=.", "--set", "data.train=own.csv", "--set",
                           "data.eval=own.csv", "--set", "data.split.by=file", "--set",
                           "placement.counts="}))["scored"],
            rows);
  expect_refused(with({"--set", "placement.plan=plan.json"}), path("elsewhere/plan.json"));
  expect_refused(with({"--set", "placement.counts=none"}), path("elsewhere/none"));
  expect_refused(with({"--set", "train.runs=runs"}), path("elsewhere/runs/a/checkpoints"));
}

TEST_F(BaseFolder, lets_training_go_on_from_elsewhere_and_a_copy_of_that_run_has_it_too) {
  where_ = "elsewhere";
  const Outcome resumed =
      run({"train", path("work/runs/a"), "--resume", "--quiet", "--set", "train.epochs=2"});
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  const std::string copy = *read_text(posix_files(), path("work/runs/a/config.toml"));
  EXPECT_NE(copy.find("\nruns = \"runs\"\n"), std::string::npos) << copy;
  where_ = "elsewhere/deep";
  EXPECT_GT(run_json({"eval", path("work/runs/a"), "--quiet"})["scored"], 0);
  const Outcome again =
      run({"train", path("work/runs/a"), "--quiet", "--set", "name=b", "--set", "train.runs=own"});
  ASSERT_EQ(again.status, 0) << again.err;
  where_ = "elsewhere";
  EXPECT_EQ(run_json({"eval", "deep/own/b", "--quiet"})["scored"],
            run_json({"eval", path("work/runs/a"), "--quiet"})["scored"]);
}

TEST_F(BaseFolder, stays_where_the_data_is_when_a_run_is_moved_and_its_checkpoints_go_with_it) {
  const Json there = run_json({"eval", "runs/a", "--quiet"});
  std::filesystem::rename(path("work/runs/a"), path("elsewhere/moved"));
  where_ = "elsewhere/deep";
  const Json moved = run_json({"eval", "../moved", "--quiet"});
  EXPECT_EQ(moved["log_loss"], there["log_loss"]);
  EXPECT_TRUE(moved["checkpoint"].get<std::string>().starts_with(path("elsewhere/moved/")));
}

TEST_F(BaseFolder, that_is_gone_is_told_and_paths_are_relative_to_where_one_stands) {
  const Json there = run_json({"eval", "runs/a", "--quiet"});
  std::filesystem::rename(path("work"), path("elsewhere/work"));
  where_ = "elsewhere/work";
  const Outcome here = run({"eval", "runs/a", "--quiet", "--json"});
  EXPECT_EQ(here.status, 0) << here.err;
  const std::string warning = "warning: base: there is no folder " + path("work") +
                              "; paths are relative to the current folder\n";
  EXPECT_NE(here.err.find(warning), std::string::npos) << here.err;
  EXPECT_EQ(Json::parse(here.out)["log_loss"], there["log_loss"]);
  const Outcome said = run({"eval", "runs/a", "--quiet", "--set", "base="});
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_EQ(said.err.find("base"), std::string::npos) << said.err;
}

TEST_F(BaseFolder, of_a_copy_without_one_is_where_one_stands) {
  std::string config = *read_text(posix_files(), path("work/runs/a/config.toml"));
  const size_t begin = config.find("base = ");
  ASSERT_NE(begin, std::string::npos);
  config.erase(begin, config.find('\n', begin) + 1 - begin);
  write("work/runs/a/config.toml", config);
  EXPECT_EQ(run({"eval", "runs/a", "--quiet"}).status, 0);
  where_ = "elsewhere";
  expect_refused({"eval", path("work/runs/a"), "--quiet"},
                 "data.train: " + path("elsewhere/data/train.csv") + ": matches no file");
}

}  // namespace
}  // namespace recmill::cli
