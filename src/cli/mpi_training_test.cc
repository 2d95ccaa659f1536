// SPDX-License-Identifier: Apache-2.0
// Ranks that an MPI launcher starts, as a user meets them. RECMILL_LAUNCHER is its path.
#include <gmock/gmock.h>

#include "cli/testing/program.h"

namespace recmill::cli {
namespace {

using testing::HasSubstr;

class MpiTraining : public Program {
 protected:
  void SetUp() override {
    write("a.toml",
          config(kDlrm, "mapping = 'dictionary'\nout_of_range = 'clamp'", "iterations = 12"));
  }

  std::vector<std::string> processes(int count) {
    return {RECMILL_LAUNCHER, "-n", std::to_string(count)};
  }

  /// The program's one line about it, and its exit status.
  void expect_failure(const std::vector<std::string>& arguments, int status,
                      const std::string& message) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("recmill: "));
    const size_t line = outcome.err.find("recmill: ");
    EXPECT_THAT(outcome.err.substr(line, outcome.err.find('\n', line) - line), HasSubstr(message));
    EXPECT_EQ(outcome.err.find("recmill: ", line + 1), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
};

}  // namespace

TEST_F(MpiTraining, verify_compares_every_rank_with_the_plain_run_of_the_first) {
  for (const int ranks : {2, 3, 4}) {
    launcher_ = processes(ranks);
    const Json result = run_json({"verify", "a.toml"});
    EXPECT_EQ(result.value("ranks", Json()), Json::array({ranks}));
    EXPECT_EQ(result.value("evaluation_samples", 0), 1000);
  }
}

TEST_F(MpiTraining, ends_as_threads_do_and_goes_on_at_another_number_of_ranks) {
  run_json({"train", "a.toml", "--set", "name=threads", "--set", "train.iterations=20"});
  launcher_ = processes(4);
  EXPECT_EQ(run_json({"train", "a.toml", "--set", "name=mpi"}).value("ranks", 0), 4);
  launcher_ = processes(2);
  const Json resumed = run_json(
      {"train", "a.toml", "--set", "name=mpi", "--set", "train.iterations=20", "--resume"});
  EXPECT_EQ(resumed.value("ranks", 0), 2);
  EXPECT_EQ(resumed.value("iterations", 0), 20);
  const Json evaluated = run_json({"eval", "runs/mpi"});
  EXPECT_EQ(run({"predict", "runs/mpi", "--out", "mpi.parquet"}).status, 0);
  launcher_.clear();
  EXPECT_EQ(run_json({"eval", "runs/mpi"}), evaluated);
  EXPECT_EQ(run({"predict", "runs/threads", "--out", "threads.parquet"}).status, 0);
  EXPECT_EQ(*read_text(posix_files(), path("mpi.parquet")),
            *read_text(posix_files(), path("threads.parquet")));
  EXPECT_EQ(run({"verify", "--checkpoints", "runs/threads", "runs/mpi"}).status, 0);
}

TEST_F(MpiTraining, a_profile_tells_time_and_bytes_of_every_rank_and_stage) {
  launcher_ = processes(2);
  const Json summary = run_json({"train", "a.toml", "--quiet", "--html", "a.html"});
  const Json profile = summary.value("profile", Json::array());
  ASSERT_EQ(profile.size(), 2u);
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(profile[rank]["name"].get<std::string>().starts_with(
        "rank " + std::to_string(rank) + " on "));
    const Json& stages = profile[rank]["stages"];
    for (const char* const stage : {"lookup", "dense gradients", "row update", "scores"}) {
      EXPECT_GT(stages[stage]["seconds"].get<double>(), 0.0) << stage;
      EXPECT_GT(stages[stage]["sent"].get<int64_t>(), 0) << stage;
      EXPECT_EQ(stages[stage]["received"], profile[1 - rank]["stages"][stage]["sent"]) << stage;
    }
  }
  EXPECT_THAT(*read_text(posix_files(), path("a.html")), HasSubstr("rank 1 on "));
}

TEST_F(MpiTraining, refuses_what_ranks_do_not_agree_on_in_one_line) {
  write("b.toml",
        config(kDlrm, "mapping = 'dictionary'\nout_of_range = 'clamp'", "iterations = 13"));
  launcher_ = {RECMILL_LAUNCHER, "-n", "1", RECMILL_PROGRAM, "train", "a.toml", ":", "-n", "1"};
  expect_failure({"train", "b.toml", "--set", "name=a"}, 2, "rank 1 on ");
  EXPECT_FALSE(posix_files().exists(path("runs/a")));

  launcher_ = processes(2);
  expect_failure({"train", "a.toml", "--set", "train.ranks=4"}, 2,
                 "train.ranks: is 4, but the job has 2 processes, each of which is a rank");
  expect_failure({"train", "a.toml", "--set", "train.shards=1"}, 2,
                 "train.ranks: 2 is more than train.shards, which is 1");

  // Nobody speaks for all where each process is a job of its own.
  const Outcome threads = run({"train", "a.toml", "--set", "train.transport=threads"});
  EXPECT_EQ(threads.status, 2);
  EXPECT_THAT(threads.err,
              HasSubstr("train.transport: is \"threads\", but 2 processes were started"));
}

}  // namespace recmill::cli
