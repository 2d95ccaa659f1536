// SPDX-License-Identifier: Apache-2.0
// The checkpoint of the best evaluation: that of its iteration, beside the newest ones, whatever
// fails, and whenever.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <sstream>
#include <thread>

#include "base/json/json.h"
#include "base/testing/faulty_files.h"
#include "base/testing/shared_files.h"
#include "checkpoint/digest.h"
#include "checkpoint/folder.h"
#include "run/testing/small_run.h"
#include "score/scoring.h"
#include "step/early_stop.h"

namespace recmill::train {
namespace {

using Steps = std::vector<int64_t>;

/// A file system in memory for the threads of a run.
struct Machine {
  FaultyFiles disk;
  std::function<Status(const std::string& path)> before = [](const std::string&) {
    return Status();
  };
  SharedFiles files{disk, [this](const std::string& path) { return before(path); }};

  Result<Json> run(const RunOptions& options, ExistingRun existing = ExistingRun::refuse) {
    return train(options, files, existing);
  }
  Steps steps() { return *checkpoint::list_steps(disk, small_checkpoints()); }
  std::optional<int64_t> best() { return *checkpoint::best_step(disk, small_checkpoints()); }
};

/// Nine evaluations by AUC, the best of them neither the first nor the last.
RunOptions judged_run(int ranks = 1) {
  RunOptions options = small_run();
  options.data.synthetic.eval_rows = 40;
  options.optimizer.learning_rate = 0.3;
  options.embedding.optimizer.learning_rate = 0.1;
  options.train.ranks = ranks;
  options.train.evaluate_every = 1;
  options.train.early_stop.metric = StopMetric::auc;
  options.train.checkpoint.every = 4;
  options.train.checkpoint.keep = 1;
  options.train.checkpoint.keep_best = true;
  return options;
}

/// The first of the best evaluations that metrics.jsonl tells of.
BestEvaluation best_line(Files& files, const char* metric) {
  std::istringstream lines(*read_text(files, "runs/small/metrics.jsonl"));
  std::optional<BestEvaluation> best;
  for (std::string text; std::getline(lines, text);) {
    const Json line = Json::parse(text);
    if (line["kind"] != "eval") continue;
    if (!best || line[metric] > best->value) best = {line[metric], line["iteration"]};
  }
  return best.value_or(BestEvaluation{});
}

/// "" where two file systems hold the same rows, layers, states, window and dictionaries.
std::string difference(Files& a, Files& b, int64_t step) {
  const std::string path = small_checkpoints() + "/" + checkpoint::folder_name(step);
  const auto in_a = checkpoint::Reader::open(a, path), in_b = checkpoint::Reader::open(b, path);
  if (!in_a.ok() || !in_b.ok()) return path + " is missing";
  const auto differences = checkpoint::compare(**in_a, **in_b, {"best", "early_stop"});
  if (!differences.ok()) return differences.status().message();
  return differences->empty() ? "" : differences->front().text;
}

/// A checkpoint after each iteration.
FaultyFiles& every_step() {
  static FaultyFiles* const files = [] {
    auto* machine = new Machine;
    RunOptions options = judged_run();
    options.train.checkpoint = {.every = 1, .keep = 100};
    const auto summary = machine->run(options);
    EXPECT_TRUE(summary.ok()) << summary.status().message();
    return &machine->disk;
  }();
  return *files;
}

Result<Json> evaluate(const RunOptions& options, Files& files, const std::string& checkpoint) {
  ThreadsWorld world;
  return run_scoring(options, {.checkpoint = checkpoint, .predictions = ""},
                     {.files = files, .world = world, .commit = "", .identity = {}});
}

}  // namespace

TEST(BestCheckpoint, stands_beside_the_newest_as_training_was_after_its_iteration) {
  for (const int ranks : {1, 2, 3, 8}) {
    for (const int64_t every : {0, 1, 4}) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, every " + std::to_string(every));
      Machine machine;
      RunOptions options = judged_run(ranks);
      options.train.checkpoint.every = every;
      const auto summary = machine.run(options);
      ASSERT_TRUE(summary.ok()) << summary.status().message();
      const BestEvaluation best = best_line(machine.disk, "auc");
      ASSERT_GT(best.iteration, 1);
      ASSERT_LT(best.iteration, 9);
      EXPECT_EQ(machine.best(), best.iteration);
      EXPECT_EQ(machine.steps(), (Steps{best.iteration, 9}));
      EXPECT_EQ(difference(machine.disk, every_step(), best.iteration), "");
      EXPECT_EQ(difference(machine.disk, every_step(), 9), "");
      EXPECT_EQ(summary->at("best_iteration"), best.iteration);
      EXPECT_EQ(summary->at("best_auc"), best.value);
    }
  }
}

TEST(BestCheckpoint, is_what_is_scored_unless_another_is_asked_for) {
  Machine machine;
  const RunOptions options = judged_run();
  const auto summary = machine.run(options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  for (const char* which : {"", "best"}) {
    const auto best = evaluate(options, machine.files, which);
    ASSERT_TRUE(best.ok()) << best.status().message();
    EXPECT_EQ(best->at("auc"), summary->at("best_auc"));
    EXPECT_EQ(best->at("which"), "best");
  }
  const auto newest = evaluate(options, machine.files, "newest");
  ASSERT_TRUE(newest.ok()) << newest.status().message();
  EXPECT_EQ(newest->at("auc"), summary->at("auc"));
  EXPECT_EQ(newest->at("which"), "newest");
  EXPECT_EQ(newest->at("checkpoint"), small_checkpoints() + "/" + checkpoint::folder_name(9));

  ASSERT_TRUE(checkpoint::unmark_best(machine.files, small_checkpoints()).ok());
  EXPECT_EQ(evaluate(options, machine.files, "")->at("which"), "newest");
  const Status none = evaluate(options, machine.files, "best").status();
  EXPECT_TRUE(none.code() == Status::Code::bad_request);
  EXPECT_NE(none.message().find(small_checkpoints() + ": no checkpoint is marked as the best"),
            std::string::npos)
      << none.message();
}

TEST(BestCheckpoint, is_not_kept_where_it_is_not_asked_for) {
  Machine machine;
  RunOptions options = judged_run();
  options.train.iterations = 6;
  ASSERT_TRUE(machine.run(options).ok());
  ASSERT_TRUE(machine.best().has_value());
  options.train.checkpoint.keep_best = false;
  options.train.iterations = 9;
  const auto summary = machine.run(options, ExistingRun::resume);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(machine.best(), std::nullopt);
  EXPECT_EQ(machine.steps(), (Steps{9}));
  EXPECT_FALSE(summary->contains("best_iteration"));
}

TEST(BestCheckpoint, of_a_run_that_goes_on_is_that_of_an_undisturbed_one) {
  for (const int64_t stop : {1, 3, 4, 5, 6, 8}) {
    SCOPED_TRACE(stop);
    Machine machine;
    RunOptions options = judged_run(2);
    options.train.iterations = stop;
    ASSERT_TRUE(machine.run(options).ok());
    options = judged_run(3);
    ASSERT_TRUE(machine.run(options, ExistingRun::resume).ok());
    const BestEvaluation best = best_line(every_step(), "auc");
    EXPECT_EQ(machine.best(), best.iteration);
    EXPECT_EQ(machine.steps(), (Steps{best.iteration, 9}));
    EXPECT_EQ(difference(machine.disk, every_step(), best.iteration), "");
  }
}

TEST(BestCheckpoint, is_another_where_another_metric_judges) {
  Machine machine;
  RunOptions options = judged_run();
  options.train.iterations = 6;
  ASSERT_TRUE(machine.run(options).ok());
  options.train.early_stop.metric = StopMetric::log_loss;
  options.train.iterations = 9;
  const auto summary = machine.run(options, ExistingRun::resume);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_GE(summary->at("best_iteration"), 6) << "an AUC is no log loss to compare with";
  EXPECT_EQ(machine.best(), summary->at("best_iteration"));
}

TEST(BestCheckpoint, is_marked_when_it_is_whole_though_training_has_gone_on) {
  Machine machine;
  std::mutex mutex;
  std::condition_variable changed;
  const int64_t iteration = best_line(every_step(), "auc").iteration;
  const std::string path = small_checkpoints() + "/" + checkpoint::folder_name(iteration);
  bool released = false, waits = false;
  int64_t lines = 0, lines_while_it_waits = 0;
  machine.before = [&](const std::string& changes) {
    std::unique_lock lock(mutex);
    if (changes.ends_with("metrics.jsonl")) {
      // Training must not be over before the checkpoint's file is begun, on a thread of its own.
      if (++lines > iteration + 1) changed.wait(lock, [&] { return waits; });
      if (waits && !released) ++lines_while_it_waits;
    }
    if (changes == path + ".tmp/part-0") {
      waits = true;
      changed.notify_all();
      changed.wait(lock, [&] { return released; });
    }
    changed.notify_all();
    return Status();
  };
  RunOptions options = judged_run();
  options.train.checkpoint.every = 0;
  options.train.log_every = 1000;  // lines are those of evaluations, one an iteration
  Status status;
  std::thread training([&] { status = machine.run(options).status(); });
  {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(
        changed.wait_for(lock, std::chrono::minutes(5), [&] { return lines_while_it_waits > 1; }));
    const auto marked = checkpoint::best_step(machine.files, small_checkpoints());
    EXPECT_TRUE(marked.ok() && *marked != iteration) << "it is not whole yet";
    released = true;
  }
  changed.notify_all();
  training.join();
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(machine.best(), iteration);
  EXPECT_EQ(difference(machine.disk, every_step(), iteration), "") << "rows of later iterations";
}

TEST(BestCheckpoint, is_whole_or_another_is_wherever_a_run_is_killed) {
  const int64_t iteration = best_line(every_step(), "auc").iteration;
  for (const int ranks : {1, 2}) {
    Machine counting;
    ASSERT_TRUE(counting.run(judged_run(ranks)).ok());
    for (int64_t n = 1; n <= counting.disk.operations(); n += 1 + n / 4) {
      SCOPED_TRACE("operation " + std::to_string(n) + ", " + std::to_string(ranks) + " ranks");
      Machine machine;
      machine.disk.fail_from(n);
      (void)machine.run(judged_run(ranks));  // old ones may have been deleted in fewer operations
      machine.disk.lose_power(n % 2 == 0 ? FaultyFiles::Unsynced::lost
                                         : FaultyFiles::Unsynced::names_kept);
      const auto found = checkpoint::open_wanted(machine.disk, small_checkpoints(),
                                                 checkpoint::Which::best_or_newest);
      if (!machine.steps().empty()) {
        ASSERT_TRUE(found.ok()) << found.status().message();
        EXPECT_TRUE(found->reader->verify().ok());
      }
      const auto summary = machine.run(judged_run(3 - ranks), ExistingRun::resume);
      ASSERT_TRUE(summary.ok()) << summary.status().message();
      EXPECT_EQ(machine.best(), iteration);
      EXPECT_EQ(machine.steps(), (Steps{iteration, 9}));
      EXPECT_EQ(difference(machine.disk, every_step(), iteration), "");
    }
  }
}

TEST(BestCheckpoint, needs_evaluation_rows) {
  Machine machine;
  RunOptions options = judged_run();
  options.data.synthetic.eval_rows = 0;
  const Status status = machine.run(options).status();
  EXPECT_TRUE(status.code() == Status::Code::bad_request);
  EXPECT_NE(status.message().find("train.checkpoint.keep_best: "), std::string::npos)
      << status.message();
  EXPECT_FALSE(machine.disk.exists("runs/small"));
}

TEST(EarlyStop, takes_an_evaluation_that_defines_no_value_for_one_without_gain) {
  const EarlyStopOptions options{.patience = 2, .metric = StopMetric::auc};
  EarlyStop stop;
  EXPECT_FALSE(stop.after(options, 1, std::nullopt));
  EXPECT_FALSE(stop.after(options, 2, 0.6));
  EXPECT_FALSE(stop.after(options, 3, std::nullopt));
  EXPECT_FALSE(stop.after(options, 3, std::nullopt)) << "one that is repeated counts once";
  EXPECT_FALSE(stop.after(options, 4, 0.7));
  EXPECT_FALSE(stop.after(options, 5, 0.65));
  EXPECT_TRUE(stop.after(options, 6, std::nullopt));
  EXPECT_EQ(stop.best, 0.7);
}

TEST(EarlyStop, knows_in_which_direction_each_metric_gains) {
  for (const auto& [metric, name] : EnumNames<StopMetric>::names) {
    const bool falls = name == "log_loss" || name == "normalized_entropy";
    EXPECT_EQ(gain(metric, 0.25, 0.75) > 0, falls) << name;
    std::optional<BestEvaluation> best;
    EXPECT_FALSE(take_if_better(metric, std::nullopt, 1, best)) << name;
    EXPECT_TRUE(take_if_better(metric, 0.5, 2, best)) << name;
    EXPECT_FALSE(take_if_better(metric, 0.5, 3, best)) << name << ": no better than before";
    EXPECT_EQ(take_if_better(metric, 0.25, 4, best), falls) << name;
    EXPECT_EQ(best->iteration, falls ? 4 : 2) << name;
  }
}

}  // namespace recmill::train
