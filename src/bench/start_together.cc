// SPDX-License-Identifier: Apache-2.0
#include "bench/start_together.h"

#include <unistd.h>

#include <algorithm>

#include "bench/machine.h"
#include "comm/gather_values.h"

namespace recmill::bench {
namespace {

constexpr double kQuietLoad = 0.08, kLoadWindow = 0.25, kPatienceSeconds = 60.0;

}  // namespace

Result<std::unique_ptr<Communicator>> ranks_of_bench(const std::string& bench, World& world) {
  std::unique_ptr<Communicator> all;
  for (const int ranks : {2, 4, 8}) {
    auto communicator = world.communicator(ranks);
    if (!communicator.ok() && ranks == 2)
      return Status::BadRequest("bench " + bench +
                                ": needs several processes: recmill launch --ranks 4 -- bench " +
                                bench);
    if (!communicator.ok()) break;
    all = *std::move(communicator);
  }
  return all;
}

Result<StartTogether> StartTogether::make(Communicator& all) {
  StartTogether made(all);
  RECMILL_ASSIGN_OR_RETURN(made.own_, gather_values(getpid(), all));
  return made;
}

Status StartTogether::start(bool counts) {
  if (all_->rank() == 0) {
    double load = bench::foreign_load(own_, kLoadWindow);
    while (load >= kQuietLoad && since_.seconds() < kPatienceSeconds)
      load = bench::foreign_load(own_, kLoadWindow);
    if (counts) highest_ = std::max(highest_, load);
  }
  return all_->barrier();
}

Status StartTogether::take_turns(size_t ways, int64_t pairs,
                                 const std::function<Status(size_t way, bool counts)>& go) {
  for (int64_t pair = 0; pair <= pairs; ++pair) {
    for (size_t w = 0; w < ways; ++w) {
      RECMILL_RETURN_IF_ERROR(start(pair > 0));
      RECMILL_RETURN_IF_ERROR(go((w + static_cast<size_t>(pair)) % ways, pair > 0));
    }
  }
  return {};
}

}  // namespace recmill::bench
