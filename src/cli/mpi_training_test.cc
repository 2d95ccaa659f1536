// SPDX-License-Identifier: Apache-2.0
// Ranks that an MPI launcher starts, as a user meets them. RECMILL_LAUNCHER is its path.
#include <gmock/gmock.h>

#include "base/json/json.h"
#include "cli/testing/program.h"
#include "kernels/codegen/testing/kernel_folder.h"

namespace recmill::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class MpiTraining : public Program {
 protected:
  void SetUp() override {
    write("a.toml",
          config(kDlrm, "mapping = 'dictionary'\nout_of_range = 'clamp'", "iterations = 12"));
  }

  std::vector<std::string> processes(int count) {
    return {RECMILL_LAUNCHER, "-n", std::to_string(count)};
  }

  /// Of two ranks the second one is started by `words` before the program.
  std::vector<std::string> second_by(const std::vector<std::string>& words,
                                     const std::vector<std::string>& arguments_of_first) {
    std::vector<std::string> all{RECMILL_LAUNCHER, "-n", "1", RECMILL_PROGRAM};
    all.insert(all.end(), arguments_of_first.begin(), arguments_of_first.end());
    all.insert(all.end(), {":", "-n", "1"});
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }

  static std::string host() {
    char name[256] = {};
    return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
  }

  void write_rows(const std::string& folder, int rows) {
    const Outcome made = run(
        {"synth", "--out", folder, "--rows", std::to_string(rows), "--eval-rows", "10", "--quiet"});
    ASSERT_EQ(made.status, 0) << made.err;
  }

  /// The program's one line about it, and its exit status.
  void expect_failure(const std::vector<std::string>& arguments, int status,
                      const std::string& message, const std::string& beginning = "recmill: ") {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("recmill: "));
    const size_t begin = outcome.err.find("recmill: ");
    const std::string line = outcome.err.substr(begin, outcome.err.find('\n', begin) - begin);
    EXPECT_THAT(line, StartsWith(beginning));
    EXPECT_THAT(line, HasSubstr(message));
    EXPECT_EQ(outcome.err.find("recmill: ", begin + 1), std::string::npos) << outcome.err;
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

TEST_F(MpiTraining, verify_finds_the_same_bits_whatever_the_sharding) {
  write("b.toml",
        config("kind = 'mlp'\ntop = [8, 1]", "optimizer.kind = 'rowwise_adagrad'", "") +
            "[[tables]]\nname = 'C1'\ndim = 1\n"
            "[[tables]]\nname = 'C2'\ndim = 15\noptimizer = 'adam'\n"
            "[[tables]]\nname = 'C3'\ndim = 17\nprecision = 'bfloat16'\n"
            "[[tables]]\nname = 'C4'\ndim = 40\n"
            "[[tables]]\nname = 'C5'\ndim = 40\noptimizer = 'ftrl'\nprecision = 'float16'\n"
            "[[tables]]\nname = 'C6'\ndim = 70\nsharding = 'hash'\n");
  for (const int ranks : {2, 3, 4}) {
    launcher_ = processes(ranks);
    for (const char* sharding : {"table", "row_range", "column"}) {
      const Json result = run_json({"verify", "b.toml", "--iterations", "6", "--set",
                                    std::string("embedding.sharding=") + sharding});
      EXPECT_EQ(result.value("ranks", Json()), Json::array({ranks})) << sharding;
    }
  }
}

TEST_F(MpiTraining, verify_finds_the_same_bits_where_each_rank_has_a_gpu) {
  launcher_ = processes(3);
  for (const char* exchange : {"host", "windows"}) {  // windows: of other processes
    const Json result =
        run_json({"verify", "a.toml", "--iterations", "4", "--set", "device=emulated", "--set",
                  "kernels.cache=" + kernels::codegen::kernel_folder(), "--set",
                  std::string("gpu.exchange=") + exchange});
    EXPECT_EQ(result.value("ranks", Json()), Json::array({3})) << exchange;
  }
}

TEST_F(MpiTraining, counts_of_rows_are_the_same_bytes_as_those_of_one_rank) {
  ASSERT_EQ(run({"stats", "a.toml", "--counts", "one.counts", "--quiet"}).status, 0);
  launcher_ = processes(3);
  const Json result = run_json({"stats", "a.toml", "--counts", "three.counts", "--quiet"});
  EXPECT_EQ(result.value("samples", 0), 6000);
  EXPECT_EQ(*read_text(posix_files(), path("one.counts")),
            *read_text(posix_files(), path("three.counts")));
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

TEST_F(MpiTraining, requests_are_answered_over_the_placed_store_as_rows_are_scored_by_one_rank) {
  run_json({"train", "a.toml"});
  ASSERT_EQ(run({"predict", "runs/a", "--out", "one.parquet", "--set", "train.eval_batch_size=100"})
                .status,
            0);
  launcher_ = processes(2);
  for (const char* const planner : {"table_wise", "oper"}) {
    const Json scored = run_json({"predict", "runs/a", "--out", "two.parquet", "--overwrite",
                                  "--latency", "--batch", "100", "--set", "embedding.store=placed",
                                  "--set", std::string("placement.planner=") + planner});
    EXPECT_EQ(scored["latency"]["ranks"], 2);
    EXPECT_EQ(scored["latency"]["requests"], 9);
    EXPECT_EQ(*read_text(posix_files(), path("two.parquet")),
              *read_text(posix_files(), path("one.parquet")))
        << planner;
  }
}

TEST_F(MpiTraining, a_profile_tells_time_and_bytes_of_every_rank_and_stage) {
  launcher_ = processes(2);
  const Json summary = run_json({"train", "a.toml", "--quiet", "--html", "a.html"});
  const Json profile = summary.value("profile", Json::array());
  ASSERT_EQ(profile.size(), 2u);
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(profile[rank]["name"].get<std::string>().starts_with(
        "rank " + std::to_string(rank) + " on "));
    EXPECT_GT(profile[rank]["row_bytes"].get<int64_t>(), 0);
    EXPECT_GT(profile[rank]["peak_bytes"], profile[rank]["row_bytes"]);
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
  launcher_ = second_by({}, {"train", "a.toml"});
  expect_failure({"train", "b.toml", "--set", "name=a"}, 2, "rank 1 on ");
  EXPECT_FALSE(posix_files().exists(path("runs/a")));

  launcher_ = processes(2);
  expect_failure({"train", "a.toml", "--set", "train.ranks=4"}, 2,
                 "train.ranks: is 4, but the job has 2 processes, each of which is a rank");
  expect_failure({"train", "a.toml", "--set", "train.slices=1"}, 2,
                 "train.ranks: 2 is more than train.slices, which is 1");

  expect_failure({"train", "a.toml", "--set", "train.transport=threads"}, 2,
                 "train.transport: is \"threads\", but 2 processes were started");
}

TEST_F(MpiTraining, an_error_before_ranks_meet_is_told_once_and_with_a_rank_that_alone_has_it) {
  launcher_ = processes(2);
  expect_failure({"train", "a.toml", "--set", "train.rank=2"}, 2, "train.rank is not a known key");
  for (const char* const verb : {"verify", "eval"})
    expect_failure({verb, "none.toml"}, 2, "cannot open", "recmill: " + path("none.toml") + ": ");
  launcher_ = second_by({}, {"train", "a.toml"});
  expect_failure({"train", "none.toml"}, 2, ": " + path("none.toml") + ": ", "recmill: rank 1 on ");
}

TEST_F(MpiTraining, refuses_ranks_that_compute_by_other_instructions_with_those_of_both) {
  const std::string version = run_json({"version"}).value("LibTorch", "");
  write("torch.toml", config("kind = 'wide_and_deep'\ndeep = [16]", "", "iterations = 3"));
  for (const char* const verb : {"train", "verify"}) {
    launcher_ = second_by({"/usr/bin/env", "ATEN_CPU_CAPABILITY=default"}, {verb, "torch.toml"});
    expect_failure({verb, "torch.toml"}, 2,
                   "rank 1 on " + host() + " has another build than rank 0 on " + host() +
                       ": LibTorch " + version + ", DEFAULT; there LibTorch " + version + ", ");
  }
  EXPECT_FALSE(posix_files().exists(path("runs/a")));
}

TEST_F(MpiTraining, a_data_file_that_one_rank_lacks_or_has_another_of_is_told_with_the_rank) {
  write_rows("data", 300);
  write_rows("longer/data", 301);
  ASSERT_EQ(posix_files().make_folder(path("none")).ok(), true);
  ASSERT_EQ(posix_files().make_folder(path("wrong/data/train.tsv")).ok(), true);
  for (const char* const folder : {".", "longer", "none", "wrong"})
    write(std::string(folder) + "/c.toml",
          "[data]\npath = 'data'\ntrain = 'train.tsv'\neval = 'eval.tsv'\ncache = ''\n"
          "[embedding]\nrows = 50\ndim = 8\n[model]\n" +
              std::string(kDlrm) + "\n[train]\nbatch_size = 128\nslices = 4\n");
  ASSERT_EQ(run({"train", "c.toml", "--quiet"}).status, 0);
  const std::vector<std::string> training{"train", "c.toml", "--set", "name=d"};
  const std::vector<std::string> scoring{"eval", "c.toml"};
  const struct {
    std::string folder;  // of rank 1
    std::vector<std::string> words;
    std::string message;
  } wrong[] = {{"none", training,
                "rank 1 on " + host() + ": c.toml:3: data.train: " + path("none/data/train.tsv") +
                    ": matches no file"},
               {"wrong", training,
                "rank 1 on " + host() + ": c.toml:3: data.train: " + path("wrong/data/train.tsv") +
                    ": is a folder"},
               {"wrong", scoring,
                "rank 1 on " + host() + ": c.toml:3: data.train: " + path("wrong/data/train.tsv") +
                    ": is a folder"},
               {"longer", scoring,
                "rank 1 on " + host() + " has another list of data files than rank 0 on "}};
  for (const auto& [folder, words, message] : wrong) {
    launcher_ = second_by({"/bin/sh", "-c", "cd " + folder + " && exec \"$@\"", "sh"}, words);
    expect_failure(words, 2, message);
  }
  EXPECT_FALSE(posix_files().exists(path("runs/d")));
}

TEST_F(MpiTraining, ranks_without_data_end_as_one_rank_does) {
  const std::string batch_norm = "kind = 'deep_fm'\ndeep = [16, 1]\nbatch_norm = true";
  const struct {
    std::string model;
    std::string rows, held_out;  // in batches of 128; those of training in 8 slices
    int samples;                 // of two epochs
  } cases[] = {{kDlrm, "3", "130", 6}, {batch_norm, "3", "130", 6}, {batch_norm, "258", "3", 516}};
  for (const auto& [model, rows, held_out, samples] : cases) {
    SCOPED_TRACE(rows + " rows, " + held_out + " held out, " + model);
    write("u.toml", config(model, "mapping = 'dictionary'\nout_of_range = 'clamp'",
                           "eval_batch_size = 128\nepochs = 2"));
    const auto train = [&](const std::string& name, const std::string& ranks) {
      return run_json({"train", "u.toml", "--quiet", "--overwrite", "--set", "name=" + name,
                       "--set", "train.ranks=" + ranks, "--set", "data.synthetic.rows=" + rows,
                       "--set", "data.synthetic.eval_rows=" + held_out});
    };
    launcher_.clear();
    const Json one = train("one", "1"), threads = train("threads", "4");
    launcher_ = processes(4);
    const Json mpi = train("mpi", "4"), scored = run_json({"eval", "runs/mpi", "--quiet"});
    launcher_.clear();
    EXPECT_EQ(one.value("samples", 0), samples);
    for (const char* const figure : {"log_loss", "auc", "iterations"}) {
      EXPECT_EQ(threads.value(figure, Json()), one.value(figure, Json())) << figure;
      EXPECT_EQ(mpi.value(figure, Json()), one.value(figure, Json())) << figure;
    }
    EXPECT_EQ(scored.value("log_loss", -1.0), one.value("log_loss", -2.0));
    for (const char* const other : {"runs/threads", "runs/mpi"}) {
      const Outcome compared = run({"verify", "--checkpoints", "runs/one", other});
      EXPECT_EQ(compared.status, 0) << compared.err;
    }
  }
}

TEST_F(MpiTraining, shared_memory_that_is_full_is_one_line_with_its_size) {
  const auto within = [&](const std::string& size) {
    return std::vector<std::string>{
        "/usr/bin/env",
        "unshare",
        "--mount",
        "/bin/sh",
        "-c",
        "mount -t tmpfs -o size=" + size + " tmpfs /dev/shm && exec \"$@\"",
        "sh"};
  };
  launcher_ = within("64k");
  if (run({"version"}).status != 0) GTEST_SKIP() << "no mount of its own is allowed here";
  const auto train_within = [&](const std::string& size) {
    launcher_ = within(size);
    const auto words = processes(2);
    launcher_.insert(launcher_.end(), words.begin(), words.end());
  };
  train_within("64k");
  expect_failure({"train", "a.toml", "--quiet"}, 1,
                 ": /dev/shm has 0.1 MiB free; processes of one host need 32 MiB there",
                 "recmill: rank 0 on ");
  EXPECT_FALSE(posix_files().exists(path("runs/a")));
  train_within("33000k");  // what ranks share themselves is not there
  EXPECT_EQ(run({"train", "a.toml", "--quiet"}).status, 0);
}

}  // namespace recmill::cli
