// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/files.h"
#include "base/status.h"
#include "comm/communicator.h"
#include "device/thread_pool.h"
#include "run/lookahead/home_start.h"
#include "run/resolved_run.h"
#include "store/cached/home_calls.h"

namespace recmill::train {

/// Where the rows of a cache are stored, as this rank sees it: in its own process those that
/// HomeRanks says, or all of them at servers. These may have rows of an earlier start of the run as
/// after its last commit: where that is not older than the newest checkpoint, ranks begin there.
/// Collective.
Result<store::CacheHomeRows> make_row_home(const ResolvedRun& run, Communicator& communicator,
                                           ThreadPool& pool, Files& files, HomeStart& start);

}  // namespace recmill::train
