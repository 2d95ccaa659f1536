// SPDX-License-Identifier: Apache-2.0
// Checkpoints of whole jobs: the same at every number of ranks, written while training goes on, and
// sound whatever fails, and whenever.
#include "run/checkpoint/checkpoint_saver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <thread>

#include "base/testing/faulty_files.h"
#include "base/testing/shared_files.h"
#include "checkpoint/digest.h"
#include "checkpoint/folder.h"
#include "placement_plan/plan_file.h"
#include "placement_plan/testing/random_plan.h"
#include "run/resolved_run.h"
#include "run/testing/small_run.h"

namespace recmill::train {
namespace {

using Steps = std::vector<int64_t>;

RunOptions with_ranks(int ranks) {
  RunOptions options = small_run();
  options.train.ranks = ranks;
  return options;
}

std::unique_ptr<checkpoint::Reader> open_step(Files& files, int64_t step) {
  auto reader =
      checkpoint::Reader::open(files, small_checkpoints() + "/" + checkpoint::folder_name(step));
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  return reader.ok() ? *std::move(reader) : nullptr;
}

// "" where two file systems hold the same checkpoint, byte for byte of every element.
std::string difference(Files& a, Files& b, int64_t step) {
  const auto in_a = open_step(a, step), in_b = open_step(b, step);
  if (in_a == nullptr || in_b == nullptr) return "one is missing";
  const auto differences = checkpoint::compare(*in_a, *in_b);
  if (!differences.ok()) return differences.status().message();
  return differences->empty() ? "" : differences->front().text;
}

void expect_one_line(const Status& status) {
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(std::count(status.message().begin(), status.message().end(), '\n'), 0)
      << status.message();
}

/// A file system in memory for the threads of a run.
struct Machine {
  FaultyFiles disk;
  std::function<Status(const std::string& path)> before = [](const std::string&) {
    return Status();
  };
  SharedFiles files{disk, [this](const std::string& path) { return before(path); }};
};

/// What an undisturbed run of one rank leaves.
FaultyFiles& undisturbed() {
  static FaultyFiles* const files = [] {
    auto* machine = new Machine;
    const auto summary = train(with_ranks(1), machine->files);
    EXPECT_TRUE(summary.ok()) << summary.status().message();
    return &machine->disk;
  }();
  return *files;
}

// Everything not whole is gone, and what is whole is what an undisturbed run wrote.
void expect_sound(FaultyFiles& disk) {
  if (!disk.exists(small_checkpoints())) return;
  const auto names = disk.list(small_checkpoints());
  for (const std::string& name : *names) {
    EXPECT_FALSE(name.ends_with(".tmp")) << name;
  }
  const auto steps = checkpoint::list_steps(disk, small_checkpoints());
  for (const int64_t step : *steps) {
    EXPECT_EQ(difference(disk, undisturbed(), step), "") << "step " << step;
  }
}

// Resumed, the run ends where an undisturbed one ends.
void expect_resumes(Machine& machine, int ranks) {
  const auto summary = train(with_ranks(ranks), machine.files, ExistingRun::resume);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(difference(machine.disk, undisturbed(), 9), "");
  expect_sound(machine.disk);
}

}  // namespace

TEST(CheckpointSaver, writes_the_same_checkpoints_at_every_number_of_ranks) {
  EXPECT_EQ(*checkpoint::list_steps(undisturbed(), small_checkpoints()), (Steps{4, 8, 9}));
  EXPECT_FALSE(open_step(undisturbed(), 4)->entries().empty());
  for (const int ranks : {2, 3, 4, 8}) {
    Machine machine;
    const auto summary = train(with_ranks(ranks), machine.files);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    for (const int64_t step : {4, 8, 9}) {
      ASSERT_TRUE(open_step(machine.disk, step)->verify().ok());
      EXPECT_EQ(difference(machine.disk, undisturbed(), step), "")
          << "step " << step << ", " << ranks << " ranks";
    }
  }
}

TEST(CheckpointSaver, a_run_moves_between_shardings_and_ranks_and_ends_as_if_it_had_stayed) {
  const auto options_of = [](Sharding sharding, int ranks, int64_t iterations) {
    RunOptions options = with_ranks(ranks);
    options.embedding.dim = 40;
    options.model.bottom = {40};
    options.embedding.optimizer.kind = OptimizerKind::rowwise_adagrad;
    options.tables[0].optimizer = OptimizerKind::adam;
    options.tables[0].correction = BiasCorrection::row;
    options.embedding.optimizer.l2 = 0.01;
    options.embedding.sharding = sharding;
    options.train.iterations = iterations;
    return options;
  };
  Machine stayed;
  ASSERT_TRUE(train(options_of(Sharding::hash, 1, 9), stayed.files).ok());
  constexpr auto& kShardings = EnumNames<Sharding>::names;
  constexpr int kRanks[] = {2, 3, 8, 4};
  for (size_t from = 0; from < kShardings.size(); ++from) {
    for (size_t to = 0; to < kShardings.size(); ++to) {
      const int ranks = kRanks[from], then = kRanks[(from + to + 1) % 4];
      SCOPED_TRACE(std::string(kShardings[from].second) + " at " + std::to_string(ranks) +
                   " ranks, then " + std::string(kShardings[to].second) + " at " +
                   std::to_string(then));
      Machine machine;
      auto summary = train(options_of(kShardings[from].first, ranks, 4), machine.files);
      ASSERT_TRUE(summary.ok()) << summary.status().message();
      EXPECT_EQ(difference(machine.disk, stayed.disk, 4), "");
      summary =
          train(options_of(kShardings[to].first, then, 9), machine.files, ExistingRun::resume);
      ASSERT_TRUE(summary.ok()) << summary.status().message();
      ASSERT_TRUE(open_step(machine.disk, 9)->verify().ok());
      EXPECT_EQ(difference(machine.disk, stayed.disk, 9), "");
    }
  }
}

TEST(CheckpointSaver, a_run_moves_between_stores_and_plans_and_ends_as_if_it_had_stayed) {
  RunOptions options = small_run();
  options.embedding.dim = 40;
  options.model.bottom = {40};
  options.tables[0].optimizer = OptimizerKind::rowwise_adagrad;
  options.embedding.optimizer.correction = BiasCorrection::row;
  options.embedding.optimizer.l2 = 0.01;
  Machine stayed;
  ASSERT_TRUE(train(options, stayed.files).ok());
  Machine machine;
  const auto spec = resolve_run(options, machine.files)->spec;
  struct Stay {
    int64_t iterations;
    int ranks;
    bool has_plan;
    StoreKind store;
    CopyReduce reduce;
  };
  using enum StoreKind;
  using enum CopyReduce;
  for (const Stay& stay : {Stay{2, 2, true, placed, dense}, Stay{4, 4, true, placed, all_gather},
                           Stay{5, 3, false, local, automatic}, Stay{7, 3, true, placed, sparse},
                           Stay{9, 2, false, placed, automatic}}) {
    SCOPED_TRACE(stay.iterations);
    RunOptions moved = options;
    moved.train.iterations = stay.iterations;
    moved.train.ranks = stay.ranks;
    moved.embedding.store = stay.store;
    moved.placement.reduce = stay.reduce;
    moved.placement.dedup_fetch = stay.ranks != 4;
    if (stay.has_plan) {
      moved.placement.plan = "plan.json";
      ASSERT_TRUE(write_plan(machine.files, "plan.json",
                             recmill::testing::random_plan(spec.tables, stay.ranks,
                                                           static_cast<uint64_t>(stay.iterations)))
                      .ok());
    }
    const auto summary = train(moved, machine.files,
                               stay.iterations == 2 ? ExistingRun::refuse : ExistingRun::resume);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    if (stay.iterations == 4) {
      EXPECT_EQ(difference(machine.disk, stayed.disk, 4), "");
    }
  }
  ASSERT_TRUE(open_step(machine.disk, 9)->verify().ok());
  EXPECT_EQ(difference(machine.disk, stayed.disk, 9), "");
}

TEST(CheckpointSaver, training_goes_on_while_a_checkpoint_is_written) {
  for (const int ranks : {1, 2}) {
    Machine machine;
    std::mutex mutex;
    std::condition_variable changed;
    bool released = false, waits = false;
    int lines = 0;
    machine.before = [&](const std::string& path) {
      std::unique_lock lock(mutex);
      const bool last_part = path.ends_with(".tmp/part-" + std::to_string(ranks - 1));
      lines += path.ends_with("metrics.jsonl");
      waits = waits || last_part;
      changed.notify_all();
      if (last_part) changed.wait(lock, [&] { return released; });
      return Status();
    };
    RunOptions options = with_ranks(ranks);
    options.train.checkpoint.every = 5;
    Status status;
    std::thread training([&] { status = train(options, machine.files).status(); });
    {
      std::unique_lock lock(mutex);
      // Iterations 6 to 9 come to their end, whose checkpoint waits for that of iteration 5.
      const bool went_on =
          changed.wait_for(lock, std::chrono::minutes(5), [&] { return waits && lines > 9; });
      EXPECT_TRUE(went_on) << "lines of metrics: " << lines;
      EXPECT_FALSE(machine.files.exists(small_checkpoints() + "/" + checkpoint::folder_name(5)));
      released = true;
    }
    changed.notify_all();
    training.join();
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(*checkpoint::list_steps(machine.disk, small_checkpoints()), (Steps{5, 9}));
    EXPECT_EQ(difference(machine.disk, undisturbed(), 9), "");
    Machine straight;
    ASSERT_TRUE(train(options, straight.files).ok());
    EXPECT_EQ(difference(machine.disk, straight.disk, 5), "") << "rows of later iterations";
  }
}

TEST(CheckpointSaver, a_checkpoint_that_was_taken_when_training_fails_is_still_written) {
  for (const int ranks : {1, 2, 4}) {
    for (const bool part_fails : {false, true}) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, the part fails: " + std::to_string(part_fails));
      Machine machine;
      std::mutex mutex;
      std::condition_variable changed;
      int lines = 0;
      machine.before = [&](const std::string& path) {
        std::unique_lock lock(mutex);
        // Opened, three iterations, an evaluation, two iterations: training fails at the fifth, and
        // the checkpoint of the fourth waits for that.
        if (path.ends_with("metrics.jsonl") && ++lines == 7) {
          changed.notify_all();
          return Status::Failed(path + ": no more lines");
        }
        if (!path.ends_with(".tmp/part-" + std::to_string(ranks - 1))) return Status();
        changed.wait(lock, [&] { return lines >= 7; });
        return part_fails ? Status::Failed(path + ": no space left on device") : Status();
      };
      const Status status = train(with_ranks(ranks), machine.files).status();
      EXPECT_NE(status.message().find("metrics.jsonl: no more lines"), std::string::npos)
          << status.message();
      const Steps whole = part_fails ? Steps{} : Steps{4};
      EXPECT_EQ(*checkpoint::list_steps(machine.disk, small_checkpoints()), whole);
      expect_sound(machine.disk);
      machine.before = [](const std::string&) { return Status(); };
      expect_resumes(machine, 2);
    }
  }
}

TEST(CheckpointSaver, an_error_of_one_rank_is_one_line_that_names_its_file_and_ends_all_ranks) {
  for (const char* step : {"step-000000000004", "step-000000000009"}) {
    Machine machine;
    const std::string part = small_checkpoints() + "/" + step + ".tmp/part-1";
    machine.before = [&](const std::string& path) {
      return path == part ? Status::Failed(path + ": no space left on device") : Status();
    };
    const Status status = train(with_ranks(3), machine.files).status();
    expect_one_line(status);
    EXPECT_NE(status.message().find(part + ": no space left on device"), std::string::npos)
        << status.message();
    EXPECT_FALSE(machine.disk.exists(small_checkpoints() + "/" + step));
    expect_sound(machine.disk);
    machine.before = [](const std::string&) { return Status(); };
    expect_resumes(machine, 2);
  }
}

// The last iteration overflows, so that no loss says it.
TEST(CheckpointSaver,
     values_that_are_not_finite_end_all_ranks_and_the_last_whole_checkpoint_stays) {
  for (const bool in_layers : {false, true}) {
    for (const int ranks : {1, 3}) {
      Machine machine;
      RunOptions options = with_ranks(ranks);
      options.tables[0].precision = RowPrecision::float16;
      options.data.synthetic.eval_rows = 0;
      options.embedding.optimizer.kind = OptimizerKind::sgd;
      options.optimizer.kind = DenseOptimizerKind::sgd;
      options.train.iterations = 4;
      ASSERT_TRUE(train(options, machine.files).ok());
      options.train.iterations = 5;
      (in_layers ? options.optimizer.learning_rate : options.embedding.optimizer.learning_rate) =
          1e30;
      if (in_layers) options.optimizer.weight_decay = 1e30;
      const Status status = train(options, machine.files, ExistingRun::resume).status();
      EXPECT_EQ(status.code(), Status::Code::failed);
      expect_one_line(status);
      EXPECT_NE(status.message().find(in_layers ? "not finite: layer bottom.0."
                                                : "not finite: table shop, row "),
                std::string::npos)
          << status.message();
      EXPECT_EQ(*machine.disk.list(small_checkpoints()),
                std::vector<std::string>{checkpoint::folder_name(4)});
      EXPECT_TRUE(open_step(machine.disk, 4)->verify().ok());
    }
  }
}

TEST(CheckpointSaver, killed_at_any_operation_a_run_resumes_and_ends_where_it_should) {
  for (const int ranks : {1, 2}) {
    Machine counting;
    ASSERT_TRUE(train(with_ranks(ranks), counting.files).ok());
    // The last operation removes the lock of a run that is whole.
    for (int64_t n = 1; n < counting.disk.operations(); n += 1 + n / 8) {
      SCOPED_TRACE("operation " + std::to_string(n) + ", " + std::to_string(ranks) + " ranks");
      Machine machine;
      machine.disk.fail_from(n);
      expect_one_line(train(with_ranks(ranks), machine.files).status());
      machine.disk.lose_power(n % 2 == 0 ? FaultyFiles::Unsynced::lost
                                         : FaultyFiles::Unsynced::names_kept);
      expect_resumes(machine, 1 + (ranks + static_cast<int>(n)) % 3);
    }
  }
}

TEST(CheckpointSaver, a_full_disk_is_one_line_and_leaves_no_half_checkpoint) {
  int failed = 0;
  for (int64_t bytes = 100;; bytes += 1597) {
    SCOPED_TRACE("disk full after " + std::to_string(bytes));
    Machine machine;
    machine.disk.limit_bytes(bytes);
    const int ranks = 1 + static_cast<int>(bytes % 3);
    const Status status = train(with_ranks(ranks), machine.files).status();
    if (status.ok()) break;
    ++failed;
    expect_one_line(status);
    EXPECT_NE(status.message().find("runs/small"), std::string::npos) << status.message();
    expect_sound(machine.disk);
    machine.disk.heal();
    expect_resumes(machine, 2);
  }
  EXPECT_GT(failed, 10) << "the disk was never full";
}

}  // namespace recmill::train
