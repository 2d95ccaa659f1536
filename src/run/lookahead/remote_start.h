// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/files.h"
#include "base/status.h"
#include "comm/communicator.h"
#include "run/lookahead/home_start.h"
#include "run/resolved_run.h"
#include "store/cached/home_calls.h"

namespace recmill::train {

/// The rows of a run at embedding servers: as after the last commit, where all of them have it, or
/// anew. Collective.
Result<store::CacheHomeRows> start_at_servers(const ResolvedRun& run, Communicator& communicator,
                                              Files& files, HomeStart& start);

}  // namespace recmill::train
