// SPDX-License-Identifier: Apache-2.0
// A run with embedding.store = "cached": its store, what plans the cache, and what is said of it.
#pragma once

#include <memory>
#include <string>

#include "base/files.h"
#include "base/json/json_fwd.h"
#include "base/status.h"
#include "comm/communicator.h"
#include "device/thread_pool.h"
#include "lookahead_plan/cache_size.h"
#include "lookahead_plan/moved_rows.h"
#include "run/lookahead/home_start.h"
#include "run/resolved_run.h"
#include "schema/cluster_spec.h"
#include "step/data/step_planner.h"
#include "store/embedding_store.h"

namespace recmill::train {

bool has_cache(const ResolvedRun& run);
/// Its rows are at servers, not in the ranks' memory.
bool has_servers(const ResolvedRun& run);
/// They are there, or on a disk.
bool has_rows_elsewhere(const ResolvedRun& run);

/// Collective. `start`: how its home was found.
Result<std::unique_ptr<store::EmbeddingStore>> make_cached_store(const ResolvedRun& run,
                                                                 Communicator& communicator,
                                                                 ThreadPool& pool, Files& files,
                                                                 HomeStart& start);

/// What a window asks for plans. `free` bytes are what the run leaves of the machine's memory to
/// all ranks; `on_gpu`: those of a GPU's memory that slots may take. `communicator`: between their
/// planners alone; null: there is one rank. It outlives this.
std::unique_ptr<StepPlanner> make_step_planner(const ResolvedRun& run, int64_t free, int64_t on_gpu,
                                               Communicator* communicator, ThreadPool& pool);

/// Adds what the run takes beside the tables of its store's home, batches and rows of the window
/// among it, where `free` bytes are left for that. What only the data says is at most so much.
void cache_need(const ResolvedRun& run, int64_t free, MemoryLedger& ledger);

/// Rows by what they were moved for.
Json to_json(const MovedRows& moved);

/// What was chosen, in a line, and whether it pays. `ranks_apart`: on several hosts.
std::string line_of(const CacheSize& size, const ResolvedRun& run, bool ranks_apart);

/// Where more was asked for than there is, a line that says so; else nothing.
std::string line_of_shortage(const LookaheadOptions& asked, const CacheSize& size);

}  // namespace recmill::train
