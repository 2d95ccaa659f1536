// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "schema/cluster_spec.h"
#include "train/resolved_run.h"

namespace recmill::train {

/// What a run will allocate, by purpose and rank: rows and their state, dense parameters and their
/// gradients, the buffers of a batch.
MemoryLedger memory_ledger(const ResolvedRun& run);

/// Refuses a run whose ledger is larger than the machine's free memory, naming both and the largest
/// items.
Status check_memory(const MemoryLedger& ledger);

}  // namespace recmill::train
