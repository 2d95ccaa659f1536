// SPDX-License-Identifier: Apache-2.0
// Models as they are judged: metrics that rows do not define, the best checkpoint, models that are
// no better than guessing.
#include <gmock/gmock.h>

#include "base/json/json.h"
#include "base/json/json_lines.h"
#include "cli/testing/program.h"

namespace recmill::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

class JudgedModel : public Program {
 protected:
  /// Rows of a dense column that says the label, or, in the evaluation rows, what `labels` says.
  void write_rows(const std::string& labels) {
    std::string train = "y,d,i\n", eval = "y,d,i\n";
    for (int row = 0; row < 40; ++row) {
      const bool click = row % 2 == 0;
      const std::string features = std::string(click ? "9" : "0") + "," + std::to_string(row % 5);
      train += std::string(click ? "1" : "0") + "," + features + "\n";
      const bool other = labels == "ones" || (labels == "turned" ? !click : click);
      eval += std::string(other ? "1" : "0") + "," + features + "\n";
    }
    write("train.csv", train);
    write("eval.csv", eval);
  }
  /// `train`: lines of [train].
  void write_config(const std::string& train) {
    std::string text =
        "[data]\nformat = 'csv'\ncache = ''\ntrain = ['train.csv']\neval = ['eval.csv']\n";
    for (const char* column : {"name = 'y'\nrole = 'label'", "name = 'd'\nrole = 'dense'",
                               "name = 'i'\nrole = 'id'\nid_text = 'integer'"})
      text += std::string("[[data.columns]]\n") + column + "\n";
    text += "[preprocess]\ndense = ['fill_null', 'log']\n";
    text += "[embedding]\nrows = 10\ndim = 2\n[model]\nkind = 'mlp'\ntop = [1]\n";
    write("a.toml", text + "[optimizer]\nlearning_rate = 0.5\n[train]\nbatch_size = 4\n" + train);
  }
};

}  // namespace

TEST_F(JudgedModel, is_not_lost_to_a_metric_that_the_evaluation_rows_do_not_define) {
  write_rows("ones");
  for (const std::string metric : {"auc", "normalized_entropy"}) {
    for (const std::string keys :
         {"", "early_stop.patience = 2\n", "checkpoint.keep_best = true\n"}) {
      write_config("epochs = 4\nearly_stop.metric = '" + metric + "'\n" + keys);
      const Outcome outcome = run({"train", "a.toml", "--overwrite"});
      ASSERT_EQ(outcome.status, 0) << keys << outcome.err;
      const Json summary = *read_json(posix_files(), path("runs/a/summary.json"));
      const bool stops = keys.starts_with("early");
      EXPECT_EQ(summary.value("ending", ""), stops ? "early stop" : "finished");
      EXPECT_EQ(summary.value("iterations", 0), stops ? 20 : 40);
      EXPECT_FALSE(summary.contains(metric));
      EXPECT_FALSE(summary.contains("best_iteration"));
      EXPECT_NE(newest_checkpoint("a"), "");
      EXPECT_THAT(outcome.err, HasSubstr("the 40 evaluated rows are of one class (click rate 1)"));
      const std::string line = "iteration 10: the evaluation rows do not define " + metric;
      EXPECT_EQ(outcome.err.find(line) == std::string::npos, keys.empty()) << outcome.err;
    }
  }
}

TEST_F(JudgedModel, is_refused_at_the_start_where_the_configuration_shows_the_metric_to_be_wrong) {
  write_rows("true");
  const std::pair<std::string, std::string> wrong[] = {
      {"gauc",
       "train.early_stop.metric: \"gauc\" needs a group for each row, and the data has no "},
      {"calibration", "train.early_stop.metric must be one of log_loss, auc, gauc, "},
      {"aux", "train.early_stop.metric must be one of log_loss, auc, gauc, "}};
  for (const auto& [metric, message] : wrong) {
    write_config("early_stop.metric = '" + metric + "'\n");
    for (const bool dry : {false, true}) {
      std::vector<std::string> arguments{"train", "a.toml"};
      if (dry) arguments.push_back("--dry-run");
      const Outcome outcome = run(arguments);
      EXPECT_EQ(outcome.status, 2) << metric;
      EXPECT_THAT(outcome.err, HasSubstr("a.toml:"));
      EXPECT_THAT(outcome.err, HasSubstr(message));
      EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    }
    EXPECT_FALSE(posix_files().exists(path("runs")));
  }
}

TEST_F(JudgedModel, is_said_to_be_no_better_than_guessing_after_training_and_by_eval) {
  write_config("epochs = 8\n");
  write_rows("true");
  EXPECT_THAT(run({"train", "a.toml"}).err, Not(HasSubstr("guessing")));
  EXPECT_THAT(run({"eval", "runs/a"}).err, Not(HasSubstr("guessing")));
  write_rows("turned");
  const Outcome trained = run({"train", "a.toml", "--overwrite", "--quiet"});
  EXPECT_EQ(trained.status, 0) << trained.err;
  for (const Outcome& outcome : {trained, run({"eval", "runs/a", "--quiet"})}) {
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err,
                HasSubstr("the model is no better than guessing: normalised entropy "));
    EXPECT_THAT(outcome.err, HasSubstr("few steps (80): lower train.batch_size (4) or raise "));
    EXPECT_THAT(outcome.err, HasSubstr("training rows are predicted far better"));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

TEST_F(JudgedModel, is_the_best_one_for_eval_predict_and_export_unless_told_otherwise) {
  write_rows("turned");  // so that the first evaluation is the best
  write_config("epochs = 3\ncheckpoint.keep_best = true\ncheckpoint.keep = 1\n");
  const Outcome trained = run({"train", "a.toml"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  const std::string best = "runs/a/checkpoints/step-000000000010";
  const std::string newest = "runs/a/checkpoints/step-000000000030";
  EXPECT_THAT(trained.err, HasSubstr("iteration 10: the best so far by log_loss"));
  EXPECT_THAT(trained.err, HasSubstr("the best checkpoint by log_loss is " + best + " (log loss "));
  const Json summary = *read_json(posix_files(), path("runs/a/summary.json"));
  EXPECT_EQ(summary.value("best_iteration", 0), 10);

  const Json by_default = run_json({"eval", "runs/a", "--quiet"});
  EXPECT_EQ(by_default.value("checkpoint", ""), best);
  EXPECT_EQ(by_default.value("which", ""), "best");
  EXPECT_EQ(by_default.value("log_loss", -1.0), summary.value("best_log_loss", -2.0));
  EXPECT_EQ(run_json({"eval", "runs/a", "--checkpoint", "best"}), by_default);
  const Json last = run_json({"eval", "runs/a", "--checkpoint", "newest"});
  EXPECT_EQ(last.value("checkpoint", ""), newest);
  EXPECT_EQ(last.value("log_loss", -1.0), summary.value("log_loss", -2.0));
  EXPECT_EQ(run_json({"eval", "runs/a", "--checkpoint", newest}).value("log_loss", -1.0),
            summary.value("log_loss", -2.0));
  EXPECT_EQ(run_json({"predict", "runs/a", "--out", "p.parquet"}).value("checkpoint", ""), best);
  EXPECT_EQ(run_json({"export", "runs/a", "--out", "a.safetensors"}).value("step", 0), 10);
  EXPECT_EQ(run_json({"export", "runs/a", "--which", "newest", "--out", "b"}).value("step", 0), 30);
  EXPECT_EQ(run_json({"inspect", "runs/a"}).value("step", 0), 30)
      << "it says what a run goes on from";

  write_config("epochs = 3\n");
  ASSERT_EQ(run({"train", "a.toml", "--overwrite", "--quiet"}).status, 0);
  EXPECT_EQ(run_json({"eval", "runs/a"}).value("which", ""), "newest");
  const Outcome none = run({"eval", "runs/a", "--checkpoint", "best"});
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.err, HasSubstr("runs/a/checkpoints: no checkpoint is marked as the best"));
}

}  // namespace recmill::cli
