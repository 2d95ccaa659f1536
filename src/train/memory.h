// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "schema/cluster_spec.h"
#include "train/resolved_run.h"

namespace recmill::train {

/// What a run takes, by purpose and rank: rows and their state, dense parameters and their
/// gradients, looked-up rows; estimates of what rows read ahead, batches in hand and metrics take;
/// and what the program has taken already. Left out are what an evaluation keeps of each held-out
/// row (8 to 20 bytes) and what allocators hold back.
MemoryLedger memory_ledger(const ResolvedRun& run);

/// Refuses a run whose ledger is larger than the machine's free memory, naming both and the largest
/// items.
Status check_memory(const MemoryLedger& ledger);

}  // namespace recmill::train
