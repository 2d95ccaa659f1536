// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/start_together.h"

#include <unistd.h>

#include <algorithm>

#include "cli/bench/machine.h"
#include "comm/gather_values.h"

namespace recmill::cli {
namespace {

constexpr double kQuietLoad = 0.08, kLoadWindow = 0.25, kPatienceSeconds = 60.0;

}  // namespace

Result<StartTogether> StartTogether::make(Communicator& all) {
  StartTogether made(all);
  RECMILL_ASSIGN_OR_RETURN(made.own_, gather_values(getpid(), all));
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
