// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "comm/world.h"
#include "run/resolved_run.h"
#include "schema/cluster_spec.h"

namespace recmill::train {

/// What a run takes of the host at its peak, by purpose and rank: rows and their state, dense
/// parameters and their gradients, looked-up rows; estimates, rather above than below, of
/// activations, rows read ahead, batches in hand, full dictionaries, metrics, rows kept for a
/// checkpoint, and batches that a cache looks ahead, with what is known of their rows and rows on
/// their way; what is pinned for a GPU (gpu_memory.h); and what the program takes. Left out is what
/// only the data says: what an evaluation keeps of each held-out row (24 to 36 bytes), the events
/// of a behaviour log (64 bytes each), and bags of many ids.
MemoryLedger memory_ledger(const ResolvedRun& run);

/// The same of a run that only scores (run_scoring()): no gradients, no checkpoint.
MemoryLedger scoring_ledger(const ResolvedRun& run);

/// `ledger` and, beside it, all rows of all tables with their state once more, `element` bytes a
/// number.
MemoryLedger with_all_rows(MemoryLedger ledger, const ModelSpec& spec, const std::string& what,
                           int64_t element);

/// Bytes of `rank`'s rows with their state.
int64_t row_bytes(const ResolvedRun& run, int rank);

/// Bytes that this process, with all of its ranks, has held in memory at most.
int64_t peak_resident_bytes();

/// Bytes of memory that this machine has free; 0: not known.
int64_t available_bytes();

/// Bytes that a run whose tables are filled leaves of this machine's free memory to a cache and its
/// window; a fifth is left to others.
int64_t free_beside(const ResolvedRun& run);

/// What `rows` evaluation rows take at least, by rank, where all are held at once, preprocessed:
/// bags count as one id.
MemoryLedger requests_ledger(const ResolvedRun& run, int64_t rows);

/// Refuses a run whose ledger, of the ranks on this machine, is larger than its free memory, naming
/// both, the largest items, and `key`, which by default is that of the largest of them.
Status check_memory(const ResolvedRun& run, MemoryLedger ledger, const World& world,
                    const std::string& key = "");

}  // namespace recmill::train
