// SPDX-License-Identifier: Apache-2.0
// Commits of a run whose rows are at servers (BagPipe, section 3.4): from the last one training
// goes on when a rank is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"
#include "run/rank.h"
#include "run/resolved_run.h"
#include "schema/cluster_spec.h"
#include "step/loop_state.h"
#include "store/cached/home_cuts.h"

namespace recmill::train {

/// What stands before errors in what a commit has beside rows.
inline constexpr const char* kCommit = "the last commit";

/// Between two iterations ranks copy what has changed, and train on. It travels to the servers
/// beside what training sends them; when all of it is there rank 0 has it recorded, and then the
/// commit before is let go. One is under way at a time.
class RowCommits {
 public:
  /// Null where rows end with the ranks. All outlive it.
  static std::unique_ptr<RowCommits> make(const ResolvedRun& run, Rank& rank,
                                          Communicator& communicator);
  /// The last commit stays, for a next start.
  ~RowCommits();
  RowCommits(const RowCommits&) = delete;
  RowCommits& operator=(const RowCommits&) = delete;

  /// Adds what `rank` keeps for a commit under way, of layers of so many `parameters` with `states`
  /// numbers of the optimizer each.
  static void need(const ResolvedRun& run, int rank, int64_t parameters, int64_t states,
                   MemoryLedger& ledger);

  /// On rank 0, after an iteration: what adopt() is to do on all; 0: nothing.
  int64_t propose(int64_t iteration);
  /// Whether ranks are to let a checkpoint that is being written end first, for which the home
  /// keeps more than it has room for.
  static bool needs_room(int64_t proposal);
  /// Collective. `state` is called where a commit begins.
  Status adopt(int64_t proposal, const std::function<LoopState()>& state);
  /// Begins one, unless the last one is of this iteration; waits for the one under way. Collective.
  Status commit(const LoopState& state);
  /// Returns when none is under way. Collective.
  Status wait();

 private:
  RowCommits(const ResolvedRun& run, Rank& rank, Communicator& communicator, store::HomeCuts& cuts);
  Status begin(LoopState state);
  Status end();
  void record();
  Status end_recording();
  bool is_under_way() const { return coming_.valid(); }

  bool is_first() const { return communicator_.rank() == 0; }
  Status see_whether_all_are_whole();

  const ResolvedRun& run_;
  Rank& rank_;
  Communicator& communicator_;
  store::HomeCuts& cuts_;
  int64_t iteration_ = -1;                        // of the last that has begun
  std::shared_ptr<table::RowSnapshot> recorded_;  // the image that a next start begins with
  store::ComingImage coming_;                     // of the commit under way
  bool all_are_whole_ = false;                    // where ranks have homes of their own
  // Rank 0, of the same: what it has beside rows, and then whether that is recorded.
  std::future<Result<std::vector<std::byte>>> packed_;
  std::future<Status> recording_;
};

}  // namespace recmill::train
