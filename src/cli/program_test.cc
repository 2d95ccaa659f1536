// SPDX-License-Identifier: Apache-2.0
// The program as a user meets it: exit statuses, one clear line, runs that end where they should.
#include "cli/testing/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/json/json.h"
#include "base/json/json_lines.h"
#include "base/random.h"
#include "run/folder/event_file.h"

namespace recmill::cli {

TEST_F(Program, names_file_line_and_key_of_a_wrong_configuration_and_exits_with_2) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"[train]\nbatch_sise = 3\n",
       "recmill: a.toml:2: train.batch_sise is not a known key; did you mean 'batch_size'?\n"},
      {"[train]\n\nbatch_size = -3\n",
       "recmill: a.toml:3: train.batch_size: must be at least 1 and at most 16777216, is -3\n"},
      {"[model]\nkind = 'dlrn'\n", "recmill: a.toml:2: model.kind must be one of"},
      {"[embedding]\nsharding = 'row_rang'\n",
       "recmill: a.toml:2: embedding.sharding must be one of hash, table, row_range, column, not "
       "'row_rang'\n"},
      {"[data]\nformat = 'criteo_tsv'\ntrain = ['nowhere*.tsv']\n", "nowhere*.tsv"},
      {"[data]\nformat = 'synthetic'\n[embedding]\nrows = 9\ndim = 0\n",
       "recmill: a.toml:5: embedding.dim: must be at least 1"},
      {"[data]\nformat = 'synthetic'\n[embedding]\nrows = 9\n[[tables]]\nname = 'C2'\n"
       "[[tables]]\nname = 'C3'\ndim = 0\n",
       "recmill: a.toml:9: tables[1].dim: must be at least 1"},
      {"[data]\nformat = 'synthetic'\n[[tables]]\nname = 'C2'\n[[tables]]\nrows = 5\n",
       "recmill: a.toml:5: tables[1].name: must be given"},
      {"[data]\nformat = 'synthetic'\n[embedding]\nrows = 9\n[train]\nranks = 4294967297\n",
       "recmill: a.toml:6: train.ranks: must be at least 0 and at most 1024, is 4294967297\n"},
      {"[data]\nformat = 'synthetic'\n[embedding]\nrows = 9\n[train]\n"
       "batch_size = 9223372036854775807\n",
       "recmill: a.toml:6: train.batch_size: must be at least 1 and at most 16777216, is "},
      {"[model]\nkind = \"a\\nb\"\n", "mlp, not 'a\\nb'\n"},
      {"[data\n", "recmill: a.toml:1: "}};
  for (const auto& [text, message] : wrong) {
    write("a.toml", text);
    const Outcome outcome = run({"train", "a.toml"});
    EXPECT_EQ(outcome.status, 2) << text << outcome.err;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_FALSE(posix_files().exists(path("runs"))) << "something was written for " << text;
  }
  EXPECT_EQ(run({"train", "missing.toml"}).status, 2);
  EXPECT_EQ(run({"trian", "a.toml"}).status, 2);
  EXPECT_EQ(run({"--help"}).status, 0);
}

TEST_F(Program, refuses_more_ranks_than_slices_and_tables_that_do_not_fit) {
  write("a.toml", config(kDlrm, "", ""));
  Outcome outcome = run({"train", "a.toml", "--set", "train.ranks=9"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("train.ranks: 9 is more than train.slices, which is 8"),
            std::string::npos)
      << outcome.err;
  outcome = run({"train", "a.toml", "--set", "embedding.rows=100000000000"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("this run needs"), std::string::npos) << outcome.err;
}

TEST_F(Program, sizes_are_refused_by_line_and_key_or_planned_without_being_allocated) {
  write("a.toml", config(kDlrm, "", ""));
  const std::pair<std::string, std::string> wrong[] = {
      {"embedding.rows=4611686018427387904", "embedding.rows: must be at least 1"},
      {"embedding.rows=9000000000000000000", "embedding.rows: must be at least 1"},
      {"embedding.rows=9007199254740992", "embedding.rows: the tables take more than 2^56 bytes"},
      {"embedding.dim=4611686018427387904", "embedding.dim: must be at least 1"},
      {"model.top=[4611686018427387904, 1]", "model.top[0]: must be at least 1"},
      {"model.top=[36028797018963968, 1]", "model.top[0]: the model's layers take more than"}};
  for (const auto& [set, message] : wrong) {
    for (const std::vector<std::string>& more : {{"--dry-run"}, std::vector<std::string>{}}) {
      std::vector<std::string> words{"train", "a.toml", "--set", set};
      words.insert(words.end(), more.begin(), more.end());
      const Outcome outcome = run(words);
      EXPECT_EQ(outcome.status, 2) << set;
      EXPECT_TRUE(outcome.err.starts_with("recmill: --set " + set + ": " + message)) << outcome.err;
    }
  }
  for (const std::string set : {"embedding.rows=17592186044416", "model.top=[1000000000000, 1]"}) {
    const Outcome outcome = run({"train", "a.toml", "--dry-run", "--json", "--set", set});
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    EXPECT_NE(outcome.err.find(": this run needs "), std::string::npos) << outcome.err;
    EXPECT_TRUE(outcome.err.starts_with("recmill: --set " + set)) << outcome.err;
    const Json ledger = Json::parse(outcome.out, nullptr, false);
    ASSERT_TRUE(ledger.is_object()) << outcome.out;
    EXPECT_GT(ledger["total bytes"].get<int64_t>(), int64_t{1} << 43) << outcome.out;
    EXPECT_LT(outcome.peak, int64_t{1} << 30);
  }
}

TEST_F(Program, a_wrong_command_line_is_one_line_and_what_fails_leaves_no_folder) {
  const struct {
    std::vector<std::string> words;
    std::string message;
  } wrong[] = {
      {{}, "a verb is required; see recmill --help"},
      {{"tarin"}, "'tarin' is not a verb; did you mean 'train'?; see recmill --help"},
      {{"plan", "placment"},
       "plan: 'placment' is not a verb; did you mean 'placement'?; see recmill plan --help"},
      {{"train"}, "train: config is required; see recmill train --help"}};
  for (const auto& [words, message] : wrong) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.err, "recmill: " + message + "\n");
  }
  write("a.toml",
        "[data]\nformat = 'csv'\ntrain = 'none.csv'\ncache = ''\n"
        "columns = [{name = 'y', role = 'label'}, {name = 'i', role = 'id'}]\n"
        "[embedding]\nrows = 10\ndim = 2\n[model]\nkind = 'mlp'\ntop = [1]\n");
  write("none.csv", "y,i\n");
  for (const char* verb : {"train", "tune"}) EXPECT_EQ(run({verb, "a.toml"}).status, 1) << verb;
  EXPECT_EQ(*posix_files().list(path("")),
            (std::vector<std::string>{"a.toml", "err", "none.csv", "out"}));  // out and err: ours
}

TEST_F(Program, a_result_that_cannot_be_written_is_an_error_of_one_line) {
  write("a.toml", config(kDlrm, "", "iterations = 1\ncheckpoint.at_end = false"));
  out_ = "/dev/full";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"train", "a.toml", "--quiet", "--overwrite", "--json"},
        {"train", "a.toml", "--quiet", "--overwrite"},
        {"train", "a.toml", "--dry-run"},
        {"version"},
        {"--help"}}) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, 1) << words[0];
    const size_t line = outcome.err.find("recmill: the result cannot be written to stdout: ");
    ASSERT_NE(line, std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find('\n', line), outcome.err.size() - 1) << outcome.err;
  }
}

TEST_F(Program, says_before_it_trains_that_there_is_nothing_to_evaluate_or_train_on) {
  std::string rows = "y,i\n";
  for (int r = 0; r < 40; ++r) rows += "0," + std::to_string(r % 7) + "\n";
  write("rows.csv", rows);
  write("a.toml",
        "[data]\nformat = 'csv'\ntrain = 'rows.csv'\ncache = ''\n"
        "columns = [{name = 'y', role = 'label'}, {name = 'i', role = 'id'}]\n"
        "[embedding]\nrows = 10\ndim = 2\n[model]\nkind = 'mlp'\ntop = [1]\n");
  const auto refused = [&](const std::vector<std::string>& sets, int status,
                           const std::string& message) {
    std::vector<std::string> words{"train", "a.toml", "--quiet"};
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_TRUE(outcome.err.starts_with("recmill: " + message)) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_FALSE(posix_files().exists(path("runs/a/metrics.jsonl")));
  };
  refused({"train.early_stop.patience=2"}, 2,
          "--set train.early_stop.patience=2: train.early_stop.patience: is 2, and there are no "
          "evaluation rows to stop by");
  for (const std::string set : {"train.early_stop.patience=2", "train.checkpoint.keep_best=true",
                                "train.early_stop.metric='gauc'"})
    EXPECT_EQ(run({"train", "a.toml", "--quiet", "--dry-run", "--set", set}).err,
              run({"train", "a.toml", "--quiet", "--set", set}).err);
  refused({"name=" + std::string(201, 'n')}, 2,
          "--set name=" + std::string(201, 'n') +
              ": name: may have at most 200 bytes in each folder, has 201");
  refused({"data.split.by=fraction", "data.split.eval_fraction=0"}, 2,
          "--set data.split.eval_fraction=0: data.split.eval_fraction: 0 leaves no rows "
          "for evaluation");
  refused({"train.negative_keep=1e-12"}, 1,
          "--set train.negative_keep=1e-12: train.negative_keep: of the 40 ");
}

TEST_F(Program, a_run_stays_within_its_folder_of_runs) {
  write("a.toml", config(kDlrm, "", "iterations = 1"));
  for (const std::string name : {"../a", "a/../../b", "/tmp/a", "."}) {
    const Outcome outcome = run({"train", "a.toml", "--quiet", "--set", "name=" + name});
    EXPECT_EQ(outcome.status, 2) << name;
    EXPECT_NE(outcome.err.find("name: must be that of a folder within train.runs, is '"),
              std::string::npos)
        << outcome.err;
  }
}

TEST_F(Program, says_in_one_line_what_found_no_memory_and_leaves_no_run) {
  // The machine has it, so that the ledger lets it pass; the process, which maps less than 1 GiB
  // beside the 2 GiB that are wanted, may not have it.
  address_space_ = int64_t{1800} << 20;
  write("table.toml", config(kDlrm, "", "") + "[[tables]]\nname = 'C7'\nrows = 67108864\n");
  std::string text = config("kind = 'wide_and_deep'\ndeep = [1]", "", "");
  text.replace(text.find("rows = 500\ndim = 8"), 18, "rows = 10\ndim = 4096");
  text.replace(text.find("batch_size = 128"), 16, "batch_size = 5000");
  write("batch.toml", text);
  const std::pair<std::vector<std::string>, std::string> wanted[] = {
      {{"train", "table.toml"}, "table C7: cannot allocate 2147483648 bytes: "},
      {{"verify", "table.toml"},
       "table C7, rows of the plain run: cannot allocate 2147483648 bytes: "},
      {{"train", "batch.toml"}, "rows looked up by a batch: cannot allocate "}};
  for (const auto& [arguments, message] : wanted) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 1) << outcome.err;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  EXPECT_FALSE(posix_files().exists(path("runs/table")));
  EXPECT_FALSE(posix_files().exists(path("runs/batch")));
}

TEST_F(Program, a_dry_run_counts_no_less_memory_than_the_run_takes) {
  const std::string table = "[[tables]]\nname = 'C7'\nrows = 1000000\n";
  write("a.toml",
        config(kDlrm, "optimizer.kind = 'rowwise_adagrad'", "checkpoint.every = 5") + table);
  write("b.toml", config("kind = 'deep_fm'\ndeep = [64, 32, 1]",
                         "mapping = 'dictionary'\nout_of_range = 'clamp'",
                         "ranks = 4\nwindow = 1000\neval_batch_size = 500") +
                      table);
  write("c.toml", config("kind = 'mlp'\ntop = [8, 1]", "sharding = 'table'", "ranks = 4") +
                      "[[tables]]\nname = 'C7'\nrows = 400000\ndim = 40\nsharding = 'column'\n");
  write("d.toml", config(kDlrm, "store = 'placed'", "ranks = 4") + table);
  for (const char* name : {"a.toml", "b.toml", "c.toml", "d.toml"}) {
    const Json ledger = run_json({"train", name, "--dry-run"});
    const Outcome outcome = run({"train", name, "--quiet"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_GE(ledger.value("total bytes", int64_t{0}), outcome.peak) << name << ledger.dump(1);
  }
}

TEST_F(Program, trains_evaluates_and_predicts_the_same_numbers) {
  write("a.toml", config(kDlrm, "", "epochs = 2"));
  const Json summary = run_json({"train", "a.toml", "--quiet"});
  EXPECT_EQ(summary.value("iterations", 0), 2 * 47);
  const Json scored = run_json({"eval", "a.toml", "--quiet"});
  EXPECT_EQ(scored.value("log_loss", -1.0), summary.value("log_loss", -2.0));
  EXPECT_EQ(scored.value("auc", -1.0), summary.value("auc", -2.0));
  // The run's folder is a configuration too.
  const Json again = run_json({"predict", "runs/a", "--quiet", "--out", "scores.parquet"});
  EXPECT_EQ(again.value("auc", -1.0), summary.value("auc", -2.0));
  const std::string scores = *read_text(posix_files(), path("scores.parquet"));
  write("scores.parquet", "somebody's own");
  const Outcome refused = run({"predict", "runs/a", "--quiet", "--out", "scores.parquet"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.err, "recmill: scores.parquet: is there already; --overwrite replaces it\n");
  EXPECT_EQ(*read_text(posix_files(), path("scores.parquet")), "somebody's own");
  EXPECT_EQ(run({"predict", "runs/a", "--quiet", "--out", "scores.parquet", "--overwrite"}).status,
            0);
  EXPECT_EQ(*read_text(posix_files(), path("scores.parquet")), scores);
  EXPECT_EQ(run({"train", "a.toml"}).status, 2) << "an existing run must be refused";
  EXPECT_EQ(run({"train", "a.toml", "--overwrite", "--quiet"}).status, 0);

  const std::string tuned = "kernels.mode=tuned", needed = "kernels.on_missing_schedule=error";
  EXPECT_NE(run({"train", "a.toml", "--overwrite", "--set", tuned, "--set", needed}).status, 0);
  EXPECT_TRUE(posix_files().exists(path("runs/a/summary.json"))) << "nothing replaces it";
}

TEST_F(Program, deletes_nothing_of_a_run_folder_that_no_run_put_there) {
  write("a.toml", config(kDlrm, "mapping = 'direct'", ""));
  ASSERT_TRUE(posix_files().make_folder(path("runs/a")).ok());
  write("runs/a/notes.txt", "of the user");
  EXPECT_EQ(run({"train", "a.toml", "--quiet"}).status, 1);  // ids without a row
  EXPECT_EQ(*posix_files().list(path("runs/a")), std::vector<std::string>{"notes.txt"});
  const std::string hash = "embedding.mapping=hash";
  EXPECT_EQ(run({"train", "a.toml", "--quiet", "--set", hash}).status, 0);
  EXPECT_TRUE(posix_files().exists(path("runs/a/summary.json")));
  EXPECT_EQ(run({"train", "a.toml", "--quiet", "--overwrite"}).status, 1);
  EXPECT_EQ(*posix_files().list(path("runs/a")), std::vector<std::string>{"notes.txt"});
}

TEST_F(Program, verify_finds_every_way_bitwise_the_same) {
  const std::vector<std::string> configs{
      config(kDlrm, "optimizer.kind = 'sgd'", ""),
      config(kDlrm, "mapping = 'dictionary'\nout_of_range = 'clamp'\nmissing = 'empty'",
             "negative_keep = 0.5"),
      config(kDlrm, "precision = 'bfloat16'\noptimizer.kind = 'adam'", "batch_size = 100\n"),
      config("kind = 'deep_fm'\ndeep = [16, 1]\nbatch_norm = true\ndropout = 0.5",
             "optimizer.kind = 'adagrad'", ""),
      config("kind = 'wide_and_deep'\ndeep = [16]", "optimizer.kind = 'ftrl'", ""),
      config("kind = 'deep_cross'\nbottom = [8]\nover = [16, 1]", "precision = 'float16'", "")};
  for (size_t i = 0; i < configs.size(); ++i) {
    std::string text = configs[i];
    // "batch_size" may come twice; the later one counts.
    if (const size_t twice = text.find("batch_size = 100\n"); twice != std::string::npos) {
      text.erase(text.find("batch_size = 128\n"), 17);
    }
    write("a.toml", text);
    const Outcome outcome = run({"verify", "a.toml", "--iterations", "12", "--ranks", "1,3,8"});
    EXPECT_EQ(outcome.status, 0) << text << outcome.err;
    EXPECT_NE(outcome.err.find("ranks 8: bitwise the same"), std::string::npos) << outcome.err;
  }
}

// The first hundred rows of each table everywhere, the others at one rank or the other.
std::string plan_for(int ranks) {
  Json plan = {{"version", 1}, {"planner", "by hand"}, {"devices", ranks}};
  plan["paths"] = Json::array();
  for (int table = 1; table <= 26; ++table) {
    const Json everywhere = {
        {"rows", {0, 100}}, {"device", (table + 1) % ranks}, {"copies", "all"}};
    const Json once = {{"rows", {100, 500}}, {"device", table % ranks}};
    plan["tables"].push_back({{"table", "C" + std::to_string(table)},
                              {"rows", 500},
                              {"dim", 8},
                              {"ranges", {everywhere, once}},
                              {"listed", 0}});
  }
  return plan.dump();
}

TEST_F(Program, rows_may_stand_wherever_a_plan_puts_them) {
  write("two.json", plan_for(2));
  const std::string embedding = "store = 'placed'\noptimizer.kind = 'adam'";
  write("a.toml", config(kDlrm, embedding, "epochs = 1"));
  Outcome outcome = run({"verify", "a.toml", "--iterations", "8", "--ranks", "1,3"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const std::string plan = "placement.plan=two.json";
  for (const char* reduce : {"sparse", "dense", "all_gather"}) {
    const Json verified =
        run_json({"verify", "a.toml", "--iterations", "8", "--set", plan, "--set",
                  std::string("placement.reduce=") + reduce, "--set",
                  std::string("placement.dedup_fetch=") + (*reduce == 'd' ? "false" : "true")});
    EXPECT_EQ(verified.value("ranks", Json()), Json::array({2}));
  }
  outcome = run({"verify", "a.toml", "--ranks", "2,4", "--set", plan});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err, "recmill: --ranks: 4, but the plan two.json is for 2\n");
  outcome = run({"train", "a.toml", "--set", plan, "--set", "train.ranks=3"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("placement.plan: the plan is for 2 devices; there are 3"),
            std::string::npos)
      << outcome.err;
  const std::vector<std::string> placed{"train", "a.toml", "--quiet",      "--set",
                                        plan,    "--set",  "train.ranks=2"};
  const Json summary = run_json(placed);
  const Json scored = run_json({"eval", "runs/a", "--quiet"});
  EXPECT_EQ(scored.value("auc", -1.0), summary.value("auc", -2.0));
}

TEST_F(Program, verify_refuses_numbers_of_ranks_that_compare_nothing) {
  write("a.toml", config(kDlrm, "", ""));
  Outcome outcome = run({"verify", "a.toml", "--iterations", "1", "--ranks", "0,1"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err, "recmill: --ranks: must be at least 1\n");
  outcome = run({"verify", "a.toml", "--iterations", "1", "--ranks", "16"});
  EXPECT_EQ(outcome.status, 2) << outcome.out;
  EXPECT_NE(outcome.err.find("--ranks: all are more than the run can have"), std::string::npos);
}

TEST_F(Program, every_model_and_row_optimizer_is_as_near_to_float64_as_the_plain_run) {
  const std::vector<std::string> configs{
      config(kDlrm, "optimizer.kind = 'sgd'", "ranks = 2"),
      config(kDlrm, "optimizer.kind = 'adam'\npooling = 'mean'", "negative_keep = 0.5"),
      config("kind = 'deep_fm'\ndeep = [16, 1]\nbatch_norm = true\ndropout = 0.5",
             "optimizer.kind = 'adagrad'", "deterministic = false"),
      config("kind = 'wide_and_deep'\ndeep = [16]", "optimizer.kind = 'ftrl'", ""),
      config("kind = 'deep_cross'\nbottom = [8]\nover = [16, 1]",
             "optimizer.kind = 'rowwise_adagrad'", "")};
  for (const std::string& text : configs) {
    write("a.toml", text);
    const Json result =
        run_json({"verify", "a.toml", "--against", "float64", "--iterations", "20"});
    EXPECT_TRUE(result.value("verified", false)) << text;
    EXPECT_EQ(result.value("iterations", 0), 20) << text;
    // Rounding to float32 is seen, and nothing but rounding: the float64 run is the same run.
    for (const Json& d : result.value("distances", Json::array())) {
      // Batch normalisation takes away what the bias before it adds.
      const bool moves = d.value("name", "") != "layer deep.0.bias";
      EXPECT_LT(d.value("plain", 1.0), 1e-5) << text << d.dump();
      if (!moves) continue;
      EXPECT_GT(d.value("plain", 0.0), 0.0) << text << d.dump();
      EXPECT_NEAR(d.value("configured", 0.0) / d.value("plain", 1.0), 1.0, 1e-6)
          << text << d.dump();
    }
  }
}

TEST_F(Program, the_plain_store_trains_to_the_bits_of_the_local_one_and_has_one_rank) {
  const std::string embedding = "mapping = 'dictionary'\nout_of_range = 'clamp'\n";
  write("local.toml", config(kDlrm, embedding, "iterations = 20\nranks = 2"));
  write("plain.toml", config(kDlrm, embedding + "store = 'plain'", "iterations = 20"));
  for (const char* name : {"local.toml", "plain.toml"}) {
    const Outcome outcome = run({"train", name, "--quiet"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  }
  const Outcome same = run({"verify", "--checkpoints", "runs/local", "runs/plain"});
  EXPECT_EQ(same.status, 0) << same.err;
  const Outcome refused = run({"train", "plain.toml", "--set", "train.ranks=2"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("train.ranks: is 2; embedding.store = \"plain\" runs on one rank\n"),
            std::string::npos)
      << refused.err;
  const Outcome verified = run({"verify", "plain.toml", "--iterations", "2", "--ranks", "1,2"});
  EXPECT_EQ(verified.status, 0) << verified.err;
  EXPECT_NE(verified.err.find("ranks 2: left out"), std::string::npos) << verified.err;
}

TEST_F(Program, distances_to_float64_are_a_table_and_with_json_an_object) {
  write("a.toml", config(kDlrm, "", ""));
  const std::vector<std::string> arguments{"verify",  "a.toml",       "--against",
                                           "float64", "--iterations", "2"};
  const Outcome outcome = run(arguments);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out.find_first_of("{}[]"), std::string::npos) << outcome.out;
  const Json result = run_json(arguments);
  const auto lines = std::ranges::count(outcome.out, '\n');
  EXPECT_EQ(lines, static_cast<int64_t>(result.size()) - 1 + 1 +
                       static_cast<int64_t>(result["distances"].size()));
  for (const Json& distance : result["distances"]) {
    EXPECT_NE(outcome.out.find("\n" + distance["name"].get<std::string>() + " "), std::string::npos)
        << outcome.out;
  }
}

TEST_F(Program, a_run_that_is_killed_again_and_again_ends_where_an_undisturbed_one_ends) {
  const uint64_t seed = 17;
  const std::string text =
      config(kDlrm, "mapping = 'dictionary'\nout_of_range = 'clamp'\noptimizer.kind = 'adam'",
             "epochs = 40\ncheckpoint.every = 7");
  write("undisturbed.toml", text);
  write("killed.toml", text);
  ASSERT_EQ(run({"train", "undisturbed.toml", "--quiet"}).status, 0);
  const Random random(seed, Purpose::test);
  int killed = 0;
  for (uint64_t round = 0; round < 20; ++round) {
    const std::string before = newest_checkpoint("killed");
    const pid_t child = start({"train", "killed.toml", "--quiet", "--resume", "--set",
                               "train.ranks=" + std::to_string(1 + round % 3)});
    // Most runs get somewhere first, however busy the machine is.
    int status = 0;
    pid_t ended = 0;
    while (ended == 0 && round % 5 != 0 && newest_checkpoint("killed") <= before) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ended = waitpid(child, &status, WNOHANG);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(random.below(120, round)));
    if (ended == 0) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
    }
    killed += WIFSIGNALED(status) ? 1 : 0;
  }
  EXPECT_GT(killed, 0) << "seed " << seed;
  const Outcome last = run({"train", "killed.toml", "--quiet", "--resume"});
  ASSERT_EQ(last.status, 0) << last.err;
  const Outcome compared = run(
      {"verify", "--checkpoints", newest_checkpoint("undisturbed"), newest_checkpoint("killed")});
  EXPECT_EQ(compared.status, 0) << "seed " << seed << ": " << compared.err;
}

TEST_F(Program, a_resumed_run_leaves_the_metrics_of_an_undisturbed_one) {
  const std::string text =
      config(kDlrm, "",
             "epochs = 3\nlog_every = 10\nwindow = 700\ncheckpoint.every = 20\n" +
                 std::string("checkpoint.keep = 20\nevaluate_every = 20"));
  write("a.toml", text);
  const Json whole = run_json({"train", "a.toml", "--quiet"});
  double seconds_at_60 = -1;
  const auto lines = [&] {  // less what a clock says
    std::vector<Json> all;
    std::istringstream in(*read_text(posix_files(), path("runs/a/metrics.jsonl")));
    for (std::string line; std::getline(in, line);) {
      all.push_back(Json::parse(line, nullptr, false));
      if (!all.back().is_object()) continue;
      if (all.back()["kind"] == "train" && all.back()["iteration"] == 60) {
        seconds_at_60 = all.back()["seconds"];
      }
      all.back().erase("samples_per_second");
      all.back().erase("seconds");
    }
    return all;
  };
  const auto events = [&] {
    std::multiset<std::pair<std::string, int64_t>> all;
    EXPECT_TRUE(train::keep_events(posix_files(), path("runs/a/events"),
                                   [&](std::string_view tag, int64_t step) {
                                     if (!tag.ends_with("seconds")) all.emplace(tag, step);
                                     return true;
                                   })
                    .ok());
    return all;
  };
  const auto undisturbed = lines();
  const auto undisturbed_events = events();
  EXPECT_GT(undisturbed.size(), 20u);
  // As if it had been killed after iteration 60, in the middle of a later line.
  const std::string checkpoints = "runs/a/checkpoints/";
  const auto saved = posix_files().list(path(checkpoints));
  ASSERT_TRUE(saved.ok());
  for (const std::string& name : *saved) {
    if (name > "step-000000000060") {
      ASSERT_TRUE(posix_files().remove(path(checkpoints + name)).ok());
    }
  }
  write("runs/a/metrics.jsonl",
        *read_text(posix_files(), path("runs/a/metrics.jsonl")) + "{\"kind\":\"tra");
  const Json resumed = run_json({"train", "a.toml", "--quiet", "--resume"});
  EXPECT_EQ(lines(), undisturbed);
  EXPECT_GT(undisturbed_events.size(), 100u);
  EXPECT_EQ(events(), undisturbed_events) << "TensorBoard sees a step twice";
  // The summary is of the whole run.
  EXPECT_EQ(whole.value("samples", 0), 3 * 6000);
  for (const char* key : {"samples", "iterations", "auc", "log_loss", "bad_rows"}) {
    EXPECT_EQ(resumed.value(key, -1.0), whole.value(key, -2.0)) << key;
  }
  EXPECT_GT(seconds_at_60, 0.0);
  EXPECT_GT(resumed.value("seconds", 0.0), seconds_at_60);
}

TEST_F(Program, a_run_that_stopped_early_does_not_go_on_when_resumed) {
  write("a.toml", config(kDlrm, "",
                         "epochs = 9\nevaluate_every = 10\nearly_stop.patience = 1\n"
                         "early_stop.minimum_gain = 10"));
  Json summary = run_json({"train", "a.toml", "--quiet"});
  EXPECT_EQ(summary.value("ending", ""), "early stop");
  EXPECT_EQ(summary.value("iterations", 0), 20);
  const double log_loss = summary.value("log_loss", -1.0);
  for (const char* every : {"train.evaluate_every=10", "train.evaluate_every=7"}) {
    const Outcome outcome = run({"train", "a.toml", "--resume", "--json", "--set", every});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE((outcome.out + outcome.err).find("had stopped early after iteration 20"),
              std::string::npos)
        << outcome.err;
    summary = *read_json(posix_files(), path("runs/a/summary.json"));
    EXPECT_EQ(summary.value("ending", ""), "early stop");
    EXPECT_EQ(summary.value("iterations", 0), 20);
    EXPECT_EQ(summary.value("log_loss", -2.0), log_loss);
    EXPECT_TRUE(summary["samples_per_second"].is_null()) << "nothing was trained";
  }
}

TEST_F(Program, deterministic_false_says_what_it_means_and_gives_the_same_bits) {
  write("a.toml", config(kDlrm, "", "epochs = 1"));
  write("b.toml", config(kDlrm, "", "epochs = 1\ndeterministic = false"));
  EXPECT_EQ(run({"train", "a.toml", "--quiet"}).err.find("train.deterministic"), std::string::npos);
  const Outcome outcome = run({"train", "b.toml", "--quiet"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("train.deterministic = false"), std::string::npos) << outcome.err;
  const Outcome same = run({"verify", "--checkpoints", "runs/a", "runs/b"});
  EXPECT_EQ(same.status, 0) << same.err;
}

TEST_F(Program, an_interrupt_saves_and_leaves_and_the_run_goes_on_from_there) {
  write("a.toml",
        config(kDlrm, "", "epochs = 1000000\ncheckpoint.every = 0\ncheckpoint.at_end = false"));
  const pid_t child = start({"train", "a.toml", "--quiet"});
  while (!posix_files().exists(path("runs/a/metrics.jsonl"))) {
    ASSERT_EQ(waitpid(child, nullptr, WNOHANG), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill(child, SIGINT);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  const Json summary = *read_json(posix_files(), path("runs/a/summary.json"));
  EXPECT_EQ(summary.value("ending", ""), "interrupted");
  EXPECT_NE(newest_checkpoint("a"), "");
}

TEST_F(Program, a_full_disk_is_one_clear_line_and_leaves_no_half_checkpoint) {
  if (geteuid() != 0) GTEST_SKIP() << "mounting a small tmpfs needs root";
  ASSERT_TRUE(posix_files().make_folder(path("small")).ok());
  if (mount("tmpfs", path("small").c_str(), "tmpfs", 0, "size=300k") != 0) {
    GTEST_SKIP() << "this system lets nobody mount a tmpfs";
  }
  write("a.toml", config(kDlrm, "", "runs = 'small'"));
  const Outcome outcome = run({"train", "a.toml", "--quiet"});
  const auto left = posix_files().list(path("small/a/checkpoints"));
  umount(path("small").c_str());
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  EXPECT_NE(outcome.err.find("No space left on device"), std::string::npos) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  ASSERT_TRUE(left.ok());
  EXPECT_TRUE(left->empty()) << left->front();
}

TEST_F(Program, stats_counts_the_ids_that_share_a_row_of_their_table) {
  write("a.toml", config(kDlrm, "", ""));
  const Json stats = run_json({"stats", "a.toml", "--quiet"});
  ASSERT_EQ(stats["ids"].size(), 26u);
  int64_t crowded = 0;
  for (const Json& column : stats["ids"]) {
    const auto ids = column["cardinality"].get<int64_t>();
    const auto observed = column["observed_collisions"].get<int64_t>();
    EXPECT_EQ(column["table_rows"], 500);
    EXPECT_GE(observed, std::max<int64_t>(0, ids - 500)) << column.dump();
    EXPECT_LT(observed, ids);
    crowded += ids > 500;
  }
  EXPECT_GT(crowded, 0);
  write("b.toml", config(kDlrm, "mapping = 'dictionary'\nout_of_range = 'clamp'", ""));
  const Json exact = run_json({"stats", "b.toml", "--quiet"});
  EXPECT_EQ(exact["ids"][0]["observed_collisions"], -1) << "each id has a row of its own";
}

TEST_F(Program, a_bad_row_is_one_line_with_its_place_and_leaves_no_file) {
  std::string row = "1";
  for (int i = 0; i < 13; ++i) row += "\t5";
  for (int i = 0; i < 26; ++i) row += "\tab";
  const std::pair<std::string, std::string> wrong[] = {
      {"0\t1\n", "rows.tsv:3: has 2 columns instead of 40"},
      {row.substr(0, row.size() - 1) + "x\n", "rows.tsv:3: column C26: 'ax' is not a hexadecimal"},
      {row + "\xE2\x82", "rows.tsv:3: the row ends inside a UTF-8 character"}};
  write("a.toml", "[data]\ntrain = 'rows.tsv'\ncache = ''\n");
  for (const auto& [bad, message] : wrong) {
    write("rows.tsv", row + "\n" + row + "\n" + bad);
    for (const std::string out : {"out.tsv", "out.csv.gz", "out.parquet", "out.arrow"}) {
      const Outcome outcome = run({"convert", "a.toml", "--out", out, "--quiet"});
      EXPECT_EQ(outcome.status, 1) << outcome.err;
      EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
      EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
      const auto names = posix_files().list(folder_.path());
      ASSERT_TRUE(names.ok());
      for (const std::string& name : *names) EXPECT_FALSE(name.starts_with("out.")) << name;
    }
  }
}

TEST_F(Program, converts_between_formats_and_back) {
  write("synth.toml", "[data]\nshape = 'criteo'\n");
  ASSERT_EQ(
      run({"synth", "--out", "data", "--rows", "2000", "--eval-rows", "500", "--quiet"}).status, 0);
  write("tsv.toml", "[data]\nformat = 'criteo_tsv'\npath = 'data'\ntrain = 'train.tsv'\n");
  ASSERT_EQ(run({"convert", "tsv.toml", "--out", "rows.parquet", "--quiet"}).status, 0);
  write("parquet.toml", "[data]\nformat = 'parquet'\ntrain = 'rows.parquet'\n");
  const Outcome back = run({"convert", "parquet.toml", "--out", "back.tsv", "--quiet"});
  ASSERT_EQ(back.status, 0) << back.err;
  const std::string rows = *read_text(posix_files(), path("data/train.tsv"));
  EXPECT_EQ(*read_text(posix_files(), path("back.tsv")), rows);
  write("back.tsv", "somebody's own");
  const Outcome refused = run({"convert", "parquet.toml", "--out", "back.tsv", "--quiet"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.err, "recmill: back.tsv: is there already; --overwrite replaces it\n");
  EXPECT_EQ(*read_text(posix_files(), path("back.tsv")), "somebody's own");
  ASSERT_EQ(run({"convert", "parquet.toml", "--out", "back.tsv", "--quiet", "--overwrite"}).status,
            0);
  EXPECT_EQ(*read_text(posix_files(), path("back.tsv")), rows);
}

TEST_F(Program, what_cannot_be_read_is_one_line_with_its_place_for_every_verb_and_leaves_nothing) {
  ASSERT_EQ(run({"synth", "--out", "data", "--rows", "300", "--eval-rows", "10", "--quiet"}).status,
            0);
  write("tsv.toml", "[data]\npath = 'data'\ntrain = 'train.tsv'\ncache = ''\n");
  for (const char* file : {"rows.tsv.gz", "rows.parquet", "rows.arrow"}) {
    ASSERT_EQ(run({"convert", "tsv.toml", "--out", file, "--quiet"}).status, 0) << file;
    const std::string whole = *read_text(posix_files(), path(file));
    write(std::string("cut-") + file, whole.substr(0, whole.size() / 2));
    std::string damaged = whole;
    for (size_t at = whole.size() / 3; at < whole.size() / 3 + 40; ++at) damaged[at] ^= 0x55;
    write(std::string("damaged-") + file, damaged);
  }
  write("empty.tsv", "");
  write("empty.parquet", "");
  const std::string columns = "columns = [{name = 'label', role = 'label'}, ";
  const struct {
    std::string file, format, more, message;
  } wrong[] = {
      {"empty.tsv", "criteo_tsv", "", "empty.tsv: is empty"},
      {"empty.parquet", "parquet", "", "empty.parquet: is empty"},
      {"data", "criteo_tsv", "", "data: is a folder, not a file"},
      {"data", "parquet", "", "data: is a folder, not a file"},
      {"none.parquet", "parquet", "", "none.parquet: matches no file"},
      {"cut-rows.tsv.gz", "criteo_tsv", "", "ends in the middle of the compressed data"},
      {"damaged-rows.tsv.gz", "criteo_tsv", "", "damaged-rows.tsv.gz: damaged compressed data"},
      {"cut-rows.parquet", "parquet", "", "cut-rows.parquet: "},
      {"damaged-rows.parquet", "parquet", "", "damaged-rows.parquet: "},
      {"cut-rows.arrow", "arrow_ipc", "", "cut-rows.arrow: "},
      {"damaged-rows.arrow", "arrow_ipc", "", "damaged-rows.arrow: "},
      {"rows.parquet", "parquet", columns + "{name = 'user', role = 'id'}]\n",
       "rows.parquet: column 'user' is missing; the file has 'label', "},
      {"rows.parquet", "parquet",
       columns + "{name = 'C1', role = 'dense'}, "
                 "{name = 'I1', role = 'time'}]\n",
       "rows.parquet: column 'I1', row 2: no value"},
      {"rows.parquet", "parquet", "split.by = 'hash'\nsplit.column = 'user'\n",
       "a.toml:6: data.split.column: the data has no column 'user'"},
      {"data/train.tsv", "criteo_tsv", "split.by = 'fraction'\nsplit.eval_fraction = 1\n",
       "a.toml:6: data.split.eval_fraction: 1 leaves no rows for training"},
      {"data/train.tsv", "criteo_tsv", "prefetch = -1\n", "a.toml:5: data.prefetch"},
      {"data/train.tsv", "criteo_tsv", "rosw = 7\n", "a.toml:5: data.rosw is not a known key"}};
  const std::vector<std::string> verbs[]{
      {"stats", "a.toml"}, {"convert", "a.toml", "--out", "out.csv"}, {"train", "a.toml"}};
  const auto names = *posix_files().list(folder_.path());
  size_t turn = 0;
  for (const auto& [file, format, more, message] : wrong) {
    write("a.toml", "[data]\nformat = '" + format + "'\ntrain = '" + file + "'\ncache = ''\n" +
                        more + "\n[embedding]\nrows = 50\ndim = 8\n[model]\n" + kDlrm);
    std::vector<std::string> arguments = verbs[turn++ % std::size(verbs)];
    arguments.push_back("--quiet");
    const Outcome outcome = run(arguments);
    EXPECT_TRUE(outcome.status == 1 || outcome.status == 2) << file << outcome.status;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << arguments[0] << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << arguments[0] << outcome.err;
    const auto left = *posix_files().list(folder_.path());
    for (const std::string& name : left) {
      if (name == "a.toml" || std::ranges::count(names, name) == 1) continue;
      EXPECT_TRUE(name == "runs" && posix_files().list(path(name))->empty())
          << arguments[0] << " of " << file << " left " << name;
    }
  }
}

TEST_F(Program, tells_of_lists_of_files_that_a_user_may_not_mean) {
  run_json({"synth", "--rows", "300", "--eval-rows", "50", "--out", "data", "--quiet"});
  ASSERT_EQ(mkfifo(path("data/pipe").c_str(), 0600), 0);
  const auto outcome = [&](const std::string& train, const std::string& eval,
                           const std::string& more) {
    write("a.toml", "[data]\ntrain = " + train + "\neval = ['" + eval + "']\ncache = ''\n" + more +
                        "\n[embedding]\nrows = 50\ndim = 8\n[model]\n" + kDlrm);
    return run({"train", "a.toml", "--overwrite", "--quiet"});
  };
  const struct {
    std::string train, eval, more, line;
  } doubtful[] = {{"'data/t*.tsv'", "data/eval.tsv", "", ""},
                  {"['data/train.tsv', './data/t*.tsv']", "data/eval.tsv", "",
                   "data.train: ./data/train.tsv is named twice: its rows are trained on twice"},
                  {"'data/*.tsv'", path("data/eval.tsv"), "",
                   "data.eval: " + path("data/eval.tsv") +
                       " is a file of data.train too: its rows are no longer held out"},
                  {"'data/train.tsv'", "data/eval.tsv", "split.by = 'fraction'",
                   "data.eval: is not read, as data.split.by takes rows of data.train instead"}};
  for (const auto& [train, eval, more, line] : doubtful) {
    const Outcome done = outcome(train, eval, more);
    EXPECT_EQ(done.status, 0) << done.err;
    // One step is no better than guessing, which is told behind it, and nothing else is.
    const std::string told = line.empty() ? "" : "warning: " + line + "\n";
    const size_t behind = done.err.find("warning: at the last evaluation the model");
    EXPECT_EQ(done.err.substr(0, behind), told);
    EXPECT_EQ(std::ranges::count(done.err, '\n'), std::ranges::count(told, '\n') + 1);
  }
  const std::pair<std::string, std::string> wrong[] = {
      {"['data/t*.tsv', 'data/none*.tsv']", "data/none*.tsv: matches no file"},
      {"'data/**/train.tsv'", "data/**/train.tsv: a * stays within one folder, ** means no more"},
      {"'data/pipe'", "data/pipe: is a pipe or device, not a file"}};
  for (const auto& [train, message] : wrong) {
    const Outcome refused = outcome(train, "data/eval.tsv", "");
    EXPECT_NE(refused.status, 0) << train;
    EXPECT_NE(refused.err.find(message), std::string::npos) << refused.err;
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  }
}

TEST_F(Program, a_behavior_log_says_how_many_events_it_passed_over) {
  std::string log;
  for (int i = 0; i < 800; ++i) {
    log += std::to_string(i % 40) + "," + std::to_string(i % 90) + "," + std::to_string(i % 9) +
           ",pv," + std::to_string(1511544000 + i) + "\n";
  }
  write("log.csv", log);
  ASSERT_EQ(run({"init", "log.csv", "--out", "a.toml"}).status, 0);
  const Json summary =
      run_json({"train", "a.toml", "--quiet", "--set", "data.behavior_log.first_time=1511544033",
                "--set", "data.behavior_log.last_time=1511544789"});
  EXPECT_EQ(summary.value("passed_over_events", 0), 33 + 10);
}

TEST_F(Program, ids_out_of_range_are_counted_by_feature_the_same_on_any_number_of_ranks) {
  std::string rows = "label,user,item\n";
  for (int i = 0; i < 200; ++i) {
    rows += std::to_string(i % 2) + "," + std::to_string(i % 50) + "," + std::to_string(i) + "\n";
  }
  write("rows.csv", rows);
  write("a.toml", R"([data]
format = "csv"
train = "rows.csv"
split.by = "fraction"
[[data.columns]]
name = "label"
role = "label"
[[data.columns]]
name = "user"
role = "id"
id_text = "integer"
[[data.columns]]
name = "item"
role = "id"
id_text = "integer"
[embedding]
rows = 150
[model]
kind = "dlrm"
top = [64, 1]
)");
  const auto ids = [&](const std::string& mapping, const std::string& ranks) {
    const Json summary = run_json(
        {"train", "a.toml", "--quiet", "--overwrite", "--set", "embedding.out_of_range=clamp",
         "--set", "embedding.mapping=" + mapping, "--set", "train.ranks=" + ranks});
    return summary.value("ids", Json());
  };
  EXPECT_EQ(ids("direct", "1"), Json::parse(R"({"item": {"clamped": 50}})"));
  EXPECT_EQ(ids("direct", "2"), ids("direct", "1"));
  EXPECT_EQ(ids("dictionary", "2"), ids("dictionary", "1"));
  EXPECT_EQ(ids("hash", "1"), Json());
}

TEST_F(Program, what_init_writes_trains_for_every_format) {
  ASSERT_EQ(run({"synth", "--out", "data", "--rows", "800", "--eval-rows", "10", "--quiet"}).status,
            0);
  write("tsv.toml", "[data]\npath = 'data'\ntrain = 'train.tsv'\n");
  for (const char* file : {"rows.csv.gz", "rows.parquet"}) {
    ASSERT_EQ(run({"convert", "tsv.toml", "--out", file, "--quiet"}).status, 0) << file;
  }
  std::string log, ids = "id;click;hour;site;price\n";
  for (int i = 0; i < 800; ++i) {
    log += std::to_string(i % 40) + "," + std::to_string(i * 7 % 90) + "," +
           std::to_string(i * 7 % 9) + ",pv," + std::to_string(1511544070 + i) + "\n";
    ids += std::to_string(i) + ";" + std::to_string(i % 2) + ";" + std::to_string(14102100 + i) +
           ";s" + std::to_string(i % 13) + ";" + std::to_string(i) + ".5\n";
  }
  write("log.csv", log);
  write("ids.csv", ids);
  for (const char* file : {"data/train.tsv", "rows.csv.gz", "rows.parquet", "log.csv", "ids.csv"}) {
    const Outcome made = run({"init", file, "--out", "a.toml", "--overwrite"});
    ASSERT_EQ(made.status, 0) << file << made.err;
    const Json summary =
        run_json({"train", "a.toml", "--quiet", "--overwrite", "--set", "train.batch_size=128"});
    EXPECT_GE(summary.value("iterations", 0), 4) << file;
    EXPECT_GT(summary.value("log_loss", 0.0), 0.0) << file;
  }
}

TEST_F(Program, takes_a_workload_by_name_wherever_a_configuration_stands) {
  const std::vector<std::string> small{
      "--set", "train.batch_size=16",         "--set", "data.synthetic.rows=64",
      "--set", "data.synthetic.eval_rows=16", "--set", "train.eval_batch_size=16"};
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), small.begin(), small.end());
    return arguments;
  };
  const Json verified = run_json(with({"verify", "recflex_d", "--iterations", "2"}));
  EXPECT_EQ(verified["verified"], true);
  EXPECT_EQ(verified["tables"], 1000);
  const Json trained =
      run_json(with({"train", "recflex_d", "--set", "train.iterations=2", "--quiet"}));
  EXPECT_EQ(trained["name"], "recflex_d");
  EXPECT_EQ(trained["iterations"], 2);
  // The run's own configuration is as short as the workload's.
  const auto written = read_text(posix_files(), path("runs/recflex_d/config.toml"));
  ASSERT_TRUE(written.ok());
  EXPECT_LT(written->size(), 20000u);
  EXPECT_EQ(run({"eval", "runs/recflex_d"}).status, 0);
  const Outcome wrong = run({"train", "recflexd"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.err.find("did you mean 'recflex_d'?"), std::string::npos) << wrong.err;
  EXPECT_EQ(std::count(wrong.err.begin(), wrong.err.end(), '\n'), 1) << wrong.err;
  // A file or folder of the name comes first.
  write("recflex_d", "[train]\nbatch_sise = 3\n");
  EXPECT_NE(run({"train", "recflex_d"}).err.find("recflex_d:2: train.batch_sise"),
            std::string::npos);
}

TEST_F(Program, names_line_and_key_of_a_wrong_line_of_a_workload) {
  write("a.toml",
        "[data]\nformat = 'synthetic'\n[data.synthetic]\nshape = 'columns'\n"
        "[data.synthetic.planted]\ncrosses = 0\n[[workload.lines]]\ndims = [4]\n"
        "[[workload.lines]]\ncount = 2\ncoverage = 1.5\ndims = [8]\n"
        "[model]\nkind = 'mlp'\ntop = [1]\n");
  const Outcome outcome = run({"train", "a.toml"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(
      outcome.err,
      "recmill: a.toml:11: workload.lines[1].coverage: must be at least 0 and at most 1, is 1.5\n");
  const Outcome set = run({"train", "recflex_a", "--set", "tune.batch_sizes=[4, 0]"});
  EXPECT_EQ(
      set.err,
      "recmill: --set tune.batch_sizes=[4, 0]: tune.batch_sizes[1]: must be at least 1 and at most "
      "16777216, is 0\n");
}

}  // namespace recmill::cli
