// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "comm/communicator.h"
#include "run/lookahead/home_start.h"
#include "run/resolved_run.h"
#include "store/cached/home_calls.h"

namespace recmill::train {

/// The rows of this rank on a disk of its machine: as after the last commit, where all ranks have
/// it, or anew. Collective.
Result<store::CacheHomeRows> start_on_disk(const ResolvedRun& run, Communicator& communicator,
                                           HomeStart& start);

}  // namespace recmill::train
