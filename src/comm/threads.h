// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of one process: what `[train] ranks = N` and the tests run on.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "comm/communicator.h"
#include "comm/world.h"

namespace recmill {

/// Hands out one Communicator for each of its ranks. A call copies straight from the sender's
/// memory to the receiver's, waits on a condition variable, and uses no thread of the pool. A call
/// that all ranks have entered finishes on all of them; one that some rank never enters ends with
/// abort(). Ranks that disagree about the call are a bug, and CHECKed.
class ThreadsGroup {
 public:
  explicit ThreadsGroup(int ranks);

  /// For one thread at a time, except for abort(). Keeps what it needs of the group alive.
  std::unique_ptr<Communicator> communicator(int rank) const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

/// Runs body(communicator) on one thread for each rank and waits for all of them. A rank that
/// returns an error aborts the others; that of the rank which failed first is returned, with the
/// rank in front of its message when there are several.
Status run_ranks(int ranks, const std::function<Status(Communicator&)>& body);

/// All ranks in this process, by run_ranks().
class ThreadsWorld final : public World {
 public:
  Result<int> ranks(int64_t wanted) const override {
    if (!std::in_range<int>(wanted))
      return Status::BadRequest("is " + std::to_string(wanted) + ", more than there can be");
    return static_cast<int>(std::max<int64_t>(1, wanted));
  }
  int neighbours() const override { return 1; }
  bool is_here(int) const override { return true; }
  bool has_first_rank() const override { return true; }
  bool tells() const override { return true; }
  Status run(int ranks, const std::function<Status(Communicator&)>& body) override {
    return run_ranks(ranks, body);
  }
  Result<std::unique_ptr<Communicator>> communicator(int ranks) const override {
    if (ranks != 1)
      return Status::BadRequest("one process was started, and " + std::to_string(ranks) +
                                " are needed");
    return ThreadsGroup(1).communicator(0);
  }
  Status fail(const Status& why) override { return why; }
};

}  // namespace recmill
