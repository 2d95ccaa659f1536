// SPDX-License-Identifier: Apache-2.0
// `recmill eval` and `recmill predict` of rows that the user names.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "cli/testing/program.h"

namespace recmill::cli {
namespace {

class Score : public Program {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(path("data"));
    write("data/train.csv", rows(0, 40));
    write("data/new.csv", rows(40, 7));
    write("data/newer.csv", rows(47, 3));
  }

  /// Rows [first, first + count) of a stream whose label follows the id.
  static std::string rows(int first, int count) {
    std::string text = "y,d,i,t\n";
    for (int row = first; row < first + count; ++row)
      text += fmt::format("{},{},{},{}\n", row % 3 == 0 ? 1 : 0, row % 7 - 3, row % 5, 1000 + row);
    return text;
  }

  /// A model of data/train.csv, trained as the run `name`; `data`: further lines of [data].
  void train(const std::string& name, const std::string& data) {
    write(name + ".toml", R"([data]
format = 'csv'
path = 'data'
cache = ''
)" + data + R"(
columns = [{name = 'y', role = 'label'}, {name = 'd', role = 'dense'},
           {name = 'i', role = 'id'}, {name = 't', role = 'time'}]
[embedding]
rows = 20
dim = 2
[model]
kind = 'mlp'
top = [1]
[train]
batch_size = 4
slices = 4
threads = 1
)");
    const Outcome trained = run({"train", name + ".toml", "--quiet"});
    ASSERT_EQ(trained.status, 0) << trained.err;
  }

  std::string text(const std::string& file) { return *read_text(posix_files(), path(file)); }

  /// The cells of a column of a csv file without quotes.
  std::vector<std::string> column(const std::string& file, const std::string& name) {
    std::vector<std::string> cells;
    std::istringstream lines(text(file));
    std::string line;
    size_t at = 0;
    for (bool header = true; std::getline(lines, line); header = false) {
      std::istringstream row(line);
      std::string cell;
      for (size_t i = 0; std::getline(row, cell, ','); ++i) {
        if (header && cell == name) at = i;
        if (!header && i == at) cells.push_back(cell);
      }
    }
    return cells;
  }

  /// Rows whose first cell, the label, is not there, or empty.
  std::string without_label(const std::string& file, bool column_is_gone) {
    std::istringstream lines(text(file));
    std::string line, rows;
    for (bool header = true; std::getline(lines, line); header = false)
      rows += (header && !column_is_gone ? line
                                         : line.substr(line.find(',') + (column_is_gone ? 1 : 0))) +
              "\n";
    return rows;
  }

  void expect_refused(const std::vector<std::string>& arguments, const std::string& what) {
    const Outcome refused = run(arguments);
    EXPECT_EQ(refused.status, 2) << refused.err;
    EXPECT_NE(refused.err.find(what), std::string::npos) << refused.err;
    EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1) << refused.err;
  }
};

TEST_F(Score, takes_all_rows_of_the_files_that_are_named_whatever_the_split) {
  int run_number = 0;
  for (const char* split :
       {"train = ['train.csv']\neval = ['newer.csv']",
        "train = ['train.csv']\nsplit.by = 'fraction'\nsplit.eval_fraction = 0.4",
        "train = ['train.csv']\nsplit.by = 'time'",
        "train = ['train.csv']\nsplit.by = 'hash'\nsplit.eval_fraction = 0.4",
        "train = ['train.csv']\nsplit.by = 'hash'\nsplit.column = 'd'\nsplit.eval_fraction = 0.5",
        "train = ['train.csv']\nsplit.by = 'fraction'\nrows = 20", "train = ['train.csv']"}) {
    const std::string name = fmt::format("r{}", run_number++);
    train(name, split);
    const std::string folder = "runs/" + name;
    EXPECT_EQ(run_json({"eval", folder, "--quiet", "--rows", "data/new.csv"})["scored"], 7)
        << split;
    const Json of_absolute =
        run_json({"eval", folder, "--quiet", "--rows", path("data/new.csv"), "data/newer.csv"});
    EXPECT_EQ(of_absolute["scored"], 10) << split;
    const Json predicted = run_json({"predict", folder, "--quiet", "--out", name + ".parquet",
                                     "--rows", "data/new*.csv", "--set", "train.ranks=2"});
    EXPECT_EQ(predicted["scored"], 10) << split;
    EXPECT_EQ(predicted["log_loss"], of_absolute["log_loss"]) << split;
  }
}

TEST_F(Score, needs_no_more_than_the_rows_that_are_named) {
  train("a", "train = ['train.csv']\nsplit.by = 'fraction'");
  const Json there = run_json({"eval", "runs/a", "--quiet", "--rows", "data/new.csv"});
  std::filesystem::remove(path("data/train.csv"));
  EXPECT_EQ(run_json({"eval", "runs/a", "--quiet", "--rows", "data/new.csv"}), there);
}

TEST_F(Score, counts_lookups_of_the_training_rows_where_rows_are_placed) {
  train("a", "train = ['train.csv']\nsplit.by = 'fraction'");
  const Json local = run_json({"eval", "runs/a", "--quiet", "--rows", "data/new.csv"});
  const Json placed = run_json({"eval", "runs/a", "--quiet", "--rows", "data/new.csv", "--set",
                                "embedding.store=placed", "--set", "train.ranks=2"});
  EXPECT_EQ(placed, local);
}

TEST_F(Score, takes_all_rows_of_columnar_files) {
  train("a", "train = ['train.csv']");
  for (const std::string format : {"parquet", "arrow_ipc"}) {
    const std::string ending = format == "parquet" ? ".parquet" : ".arrow";
    for (const std::string file : {"train", "new"})
      ASSERT_EQ(run({"convert", "a.toml", "--quiet", "--set", "data.train=" + file + ".csv",
                     "--out", "data/" + file + ending})
                    .status,
                0);
    write("c.toml", "[data]\nformat = '" + format + "'\npath = 'data'\ntrain = ['train" + ending +
                        "']\nsplit.by = 'time'\n[embedding]\nrows = 20\ndim = 2\n[model]\n"
                        "kind = 'mlp'\ntop = [1]\n[train]\nbatch_size = 4\n");
    ASSERT_EQ(run({"train", "c.toml", "--quiet", "--overwrite"}).status, 0);
    EXPECT_EQ(run_json({"eval", "runs/c", "--quiet", "--rows", "data/new" + ending})["scored"], 7);
  }
}

TEST_F(Score, tells_of_a_folder_that_is_not_there_before_it_scores) {
  train("a", "train = ['train.csv']\nsplit.by = 'fraction'");
  write("new.csv", "none of the columns\n");
  const Outcome outcome = run({"predict", "runs/a", "--rows", "new.csv", "--out", "none/p.csv"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err, "recmill: --out none/p.csv: there is no folder " + path("none") + "\n");
}

TEST_F(Score, of_files_that_are_not_there_names_the_whole_path) {
  train("a", "train = ['train.csv']\nsplit.by = 'fraction'");
  for (const char* verb : {"eval", "predict"}) {
    const auto refused = [&](const std::string& rows, const std::string& why) {
      std::vector<std::string> words{verb, "runs/a", "--quiet", "--rows", rows};
      if (std::string_view(verb) == "predict") words.insert(words.end(), {"--out", "p.parquet"});
      expect_refused(words, why);
    };
    refused("new.csv", "--rows: " + path("new.csv") + ": matches no file");
    refused("data/none*.csv", "--rows: " + path("data/none*.csv") + ": matches no file");
    refused("data", "--rows: " + path("data") + ": is a folder, not a file");
    refused("data/**/new.csv", "a * stays within one folder");
  }
  expect_refused({"train", "a.toml", "--overwrite", "--quiet", "--set", "data.train=none.csv"},
                 "data.train: " + path("data/none.csv") + ": matches no file");
}

TEST_F(Score, refuses_files_where_rows_are_synthetic) {
  write("s.toml", config(kDlrm, "", "iterations = 2"));
  ASSERT_EQ(run({"train", "s.toml", "--quiet"}).status, 0);
  expect_refused({"eval", "runs/s", "--quiet", "--rows", "data/new.csv"},
                 "--rows: the rows of data.format = \"synthetic\" are made as they are read");
}

TEST_F(Score, takes_rows_without_a_label_and_says_that_there_are_no_metrics) {
  train("a", "train = ['train.csv']");
  const Outcome with =
      run({"predict", "runs/a", "--quiet", "--rows", "data/new.csv", "--out", "with.csv"});
  ASSERT_EQ(with.status, 0) << with.err;
  write("data/none.csv", without_label("data/new.csv", true));
  write("data/empty.csv", without_label("data/new.csv", false));
  for (const char* file : {"none", "empty"}) {
    const std::string rows = std::string("data/") + file + ".csv", out = std::string(file) + ".csv";
    const Outcome predicted =
        run({"predict", "runs/a", "--quiet", "--json", "--rows", rows, "--out", out});
    ASSERT_EQ(predicted.status, 0) << predicted.err;
    EXPECT_NE(predicted.err.find("no row has a label: metrics are left out"), std::string::npos);
    const Json result = Json::parse(predicted.out);
    EXPECT_EQ(result["unlabelled"], 7);
    EXPECT_FALSE(result.contains("log_loss"));
    EXPECT_EQ(column(out, "probability"), column("with.csv", "probability"));
    EXPECT_EQ(text(out).substr(0, text(out).find('\n')), "file,row,probability");
    EXPECT_EQ(run({"eval", "runs/a", "--quiet", "--rows", rows}).status == 0, false);
  }
  const Outcome mixed = run({"predict", "runs/a", "--quiet", "--json", "--rows", "data/none.csv",
                             "data/new.csv", "--out", "mixed.csv"});
  ASSERT_EQ(mixed.status, 0) << mixed.err;
  const Json result = Json::parse(mixed.out);
  EXPECT_EQ(result["unlabelled"], 7);
  EXPECT_EQ(result["scored"], 7);
  EXPECT_NE(text("mixed.csv").find("data/none.csv,0,"), std::string::npos);
}

TEST_F(Score, lines_predictions_up_by_number_or_by_a_column_where_bad_rows_are_skipped) {
  write("data/bad.csv", "y,d,i,t,name\n1,2,3,9,\"a, b\"\n0,none,3,9,c\n0,1,2,9,d\n");
  train("a", "train = ['train.csv']\non_bad_row = 'skip'");
  const std::vector<std::string> predict{"predict", "runs/a", "--quiet", "--rows", "data/bad.csv"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), predict.begin(), predict.end());
    return more;
  };
  ASSERT_EQ(run(with({"--out", "rows.csv"})).status, 0);
  EXPECT_EQ(column("rows.csv", "row"), (std::vector<std::string>{"0", "2"}));
  for (const char* ranks : {"1", "2"}) {
    const std::string out = std::string("named") + ranks + ".csv";
    ASSERT_EQ(
        run(with({"--key", "name", "--out", out, "--set", std::string("train.ranks=") + ranks}))
            .status,
        0);
    EXPECT_EQ(text(out).substr(0, 30), "name,probability,label\n\"a, b\",");
    EXPECT_NE(text(out).find("\nd,"), std::string::npos);
  }
  EXPECT_EQ(text("named1.csv"), text("named2.csv"));
  ASSERT_EQ(run(with({"--key", "name", "--out", "late.csv", "--latency", "--batch", "1", "--warmup",
                      "0"}))
                .status,
            0);
  EXPECT_EQ(text("late.csv"), text("named1.csv"));
  ASSERT_EQ(run(with({"--key", "name", "--out", "at_once.csv", "--latency", "--batch", "1",
                      "--warmup", "0", "--concurrency", "3"}))
                .status,
            0);
  EXPECT_EQ(text("at_once.csv"), text("named1.csv"));
  expect_refused(with({"--out", "x.csv", "--latency", "--concurrency", "0"}),
                 "predict: --concurrency: must be at least 1 and at most 1024, is 0; see ");
  expect_refused(with({"--key", "none", "--out", "x.csv"}), "--key: the data has no column 'none'");
  expect_refused(with({"--key", "label", "--out", "x.csv"}), "is a column of the predictions");
  expect_refused(with({"--out", "x.csv", "--latency", "--batch", "16777217"}),
                 "predict: --batch: must be at least 1 and at most 16777216, is 16777217; see ");
  expect_refused(with({"--out", "x.csv", "--latency", "--rate", "1e-300"}),
                 "predict: --rate: must be at least 0.001, is 1e-300; see ");
  expect_refused(with({"--out", "x.txt"}), "--out: x.txt: the name says no format");
}

TEST_F(Score, takes_criteo_rows_without_a_label) {
  ASSERT_EQ(
      run({"synth", "--out", "criteo", "--rows", "300", "--eval-rows", "20", "--quiet"}).status, 0);
  write("c.toml",
        "[data]\npath = 'criteo'\ntrain = 'train.tsv'\neval = 'eval.tsv'\ncache = ''\n"
        "[embedding]\nrows = 50\ndim = 8\n[model]\n" +
            std::string(kDlrm) + "\n[train]\nbatch_size = 128\n");
  ASSERT_EQ(run({"train", "c.toml", "--quiet"}).status, 0);
  std::string rows;
  const std::string all = text("criteo/eval.tsv");
  for (size_t begin = 0; begin < all.size(); begin = all.find('\n', begin) + 1)
    rows += all.substr(all.find('\t', begin) + 1, all.find('\n', begin) - all.find('\t', begin));
  write("criteo/test.tsv", rows);
  ASSERT_EQ(run({"predict", "runs/c", "--quiet", "--out", "with.csv"}).status, 0);
  const Outcome without =
      run({"predict", "runs/c", "--quiet", "--rows", "criteo/test.tsv", "--out", "without.csv.gz"});
  ASSERT_EQ(without.status, 0) << without.err;
  ASSERT_EQ(
      run({"predict", "runs/c", "--quiet", "--rows", "criteo/test.tsv", "--out", "without.csv"})
          .status,
      0);
  EXPECT_EQ(column("without.csv", "probability"), column("with.csv", "probability"));
}

TEST_F(Score, makes_sequences_of_a_behaviour_log_from_the_files_that_are_named) {
  const auto log = [](int first, int users) {
    std::string text;
    for (int user = first; user < first + users; ++user)
      for (int event = 0; event < 4; ++event)
        text += fmt::format("{},{},{},pv,{}\n", user, (user * 7 + event) % 11, event % 3,
                            1511600000 + user * 100 + event);
    return text;
  };
  write("data/train.log", log(0, 30));
  write("data/new.log", log(30, 5));
  write("b.toml", R"([data]
format = 'behavior_log'
path = 'data'
train = ['train.log']
cache = ''
split.by = 'hash'
split.column = 'user'
[data.behavior_log]
sequence_length = 3
columns = ['seconds_since_last']
[embedding]
rows = 20
dim = 2
[[features]]
name = 'item'
[[features]]
name = 'item_history'
table = 'item'
pooling = 'none'
[model]
kind = 'tbsm'
bottom = [2]
top = [4, 2]
attention = [2]
over = [2, 1]
sequence_length = 3
[train]
batch_size = 4
slices = 4
threads = 1
)");
  const Outcome trained = run({"train", "b.toml", "--quiet"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  // Three events of each user's four have one before, and a negative beside them.
  EXPECT_EQ(run_json({"eval", "runs/b", "--quiet", "--rows", "data/new.log"})["scored"], 5 * 3 * 2);
}

}  // namespace
}  // namespace recmill::cli
