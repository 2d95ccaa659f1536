// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/start_together.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "cli/bench/machine.h"

namespace recmill::cli {
namespace {

constexpr double kQuietLoad = 0.08, kLoadWindow = 0.25, kPatienceSeconds = 60.0;

}  // namespace

Result<StartTogether> StartTogether::make(Communicator& all) {
  StartTogether made(all);
  const pid_t own = getpid();
  RECMILL_ASSIGN_OR_RETURN(const Received received,
                           all.all_gather(std::as_bytes(std::span(&own, 1))));
  made.own_.resize(all.ranks());
  std::memcpy(made.own_.data(), received.bytes.data(), received.bytes.size());
  return made;
}

Status StartTogether::start(bool counts) {
  if (all_->rank() == 0) {
    double load = cli::foreign_load(own_, kLoadWindow);
    while (load >= kQuietLoad && since_.seconds() < kPatienceSeconds)
      load = cli::foreign_load(own_, kLoadWindow);
    if (counts) highest_ = std::max(highest_, load);
  }
  return all_->barrier();
}

}  // namespace recmill::cli
