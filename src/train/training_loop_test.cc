// SPDX-License-Identifier: Apache-2.0
#include "train/training_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "base/testing/faulty_files.h"
#include "base/testing/shared_files.h"
#include "run/testing/small_run.h"

namespace recmill::train {
namespace {

/// Proposes what a table says, on rank 0, and notes what it is told.
class RecordingHook final : public LoopHook {
 public:
  struct Call {
    std::string what;
    int64_t iteration, value;
    bool operator==(const Call&) const = default;
  };

  RecordingHook(std::map<int64_t, Proposal> proposals, int64_t fails_at)
      : proposals_(std::move(proposals)), fails_at_(fails_at) {}

  Status see(const SparseBatch& /*batch*/, int64_t iteration) override {
    calls_.push_back({"see", iteration, 0});
    return {};
  }
  Result<Proposal> propose(int64_t iteration) override {
    ++proposed_;
    if (iteration == fails_at_) return Status::Failed("the hook fails");
    const auto found = proposals_.find(iteration);
    return found == proposals_.end() ? Proposal(0) : found->second;
  }
  Status adopt(Proposal proposal, int64_t iteration) override {
    calls_.push_back({"adopt", iteration, proposal});
    return {};
  }
  bool moves_rows(int64_t iteration) const override { return iteration == 2; }

  const std::vector<Call>& calls() const { return calls_; }
  int proposed() const { return proposed_; }

 private:
  const std::map<int64_t, Proposal> proposals_;
  const int64_t fails_at_;
  std::vector<Call> calls_;
  int proposed_ = 0;
};

struct Seen {
  Status status;
  std::map<int, std::vector<RecordingHook::Call>> calls;  // of the second hook, by rank
  std::map<int, int> proposed;
};

/// Six iterations of a small run under two hooks, of which the second is watched.
Seen run_with_hooks(int ranks, int64_t fails_at) {
  RunOptions options = small_run();
  options.train.iterations = 6;
  options.train.ranks = ranks;
  FaultyFiles disk;
  SharedFiles files(disk, [](const std::string&) { return Status(); });
  const auto run = resolve_run(options, files);
  if (!run.ok()) return {run.status(), {}, {}};
  CheckpointPublisher publisher(files, small_checkpoints(), ranks, options.train.checkpoint.keep);
  const auto pool = make_pool(1);
  Seen seen;
  std::mutex mutex;
  seen.status = run_ranks(ranks, [&](Communicator& communicator) -> Status {
    RECMILL_ASSIGN_OR_RETURN(Rank rank, make_rank(*run, Way::engine, communicator, *pool, files));
    CheckpointSaver saver(*run, rank, communicator, publisher);
    RecordingHook first({{3, 5}}, -1), second({{1, 7}, {3, 9}}, fails_at);
    const LoopSetting setting{.saver = saver, .hooks = {&first, &second}};
    TrainingLoop loop(*run, rank, communicator, setting, {});
    const Status ended = loop.run().status();
    const std::lock_guard lock(mutex);
    seen.calls[communicator.rank()] = second.calls();
    seen.proposed[communicator.rank()] = second.proposed();
    return ended;
  });
  return seen;
}

std::vector<RecordingHook::Call> expected_calls() {
  std::vector<RecordingHook::Call> calls;
  for (int64_t i = 0; i < 6; ++i) {
    calls.push_back({"see", i, 0});
    calls.push_back({"adopt", i + 1, i == 0 ? 7 : i == 2 ? 9 : 0});
  }
  return calls;
}

}  // namespace

TEST(TrainingLoop, every_rank_adopts_what_rank_0_proposes_before_the_same_iteration) {
  for (const int ranks : {1, 2, 4}) {
    const Seen seen = run_with_hooks(ranks, -1);
    ASSERT_TRUE(seen.status.ok()) << seen.status.message();
    ASSERT_EQ(seen.calls.size(), static_cast<size_t>(ranks));
    for (const auto& [rank, calls] : seen.calls) {
      EXPECT_TRUE(calls == expected_calls()) << "rank " << rank << " of " << ranks;
      EXPECT_EQ(seen.proposed.at(rank), rank == 0 ? 6 : 0);
    }
  }
}

TEST(TrainingLoop, a_hook_that_fails_ends_the_run_on_all_ranks_with_its_reason) {
  for (const int ranks : {1, 3}) {
    const Seen seen = run_with_hooks(ranks, 2);
    ASSERT_FALSE(seen.status.ok());
    EXPECT_NE(seen.status.message().find("the hook fails"), std::string::npos)
        << seen.status.message();
    for (const auto& [rank, calls] : seen.calls)
      EXPECT_EQ(std::ranges::count(calls, std::string("see"), &RecordingHook::Call::what), 2);
  }
}

}  // namespace recmill::train
