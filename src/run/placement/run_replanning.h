// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/files.h"
#include "base/status.h"
#include "comm/communicator.h"
#include "device/thread_pool.h"
#include "run/folder/run_log.h"
#include "run/placement/replanner.h"
#include "run/rank.h"
#include "schema/cluster_spec.h"

namespace recmill::train {

/// Whether a run looks every now and then if its rows are to be placed anew.
bool replans(const ResolvedRun& run);

/// Adds what it takes of `rank`. While rows move, one table is stored twice: the largest, in shares
/// as they are.
void replanning_need(const ResolvedRun& run, int rank, MemoryLedger& ledger);

/// What does so for a rank, as [placement] says; null where the run does not. `iteration`: the next
/// to be trained; `log`: rank 0's. Collective. All outlives it.
Result<std::unique_ptr<Replanner>> make_replanner(const ResolvedRun& run, Rank& rank,
                                                  Communicator& communicator, ThreadPool& pool,
                                                  Files& files, RunLog* log, int64_t iteration);

}  // namespace recmill::train
