// SPDX-License-Identifier: Apache-2.0
// Where the rows of a run are stored.
#pragma once

#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "run/resolved_run.h"
#include "store/sharded/sharded_options.h"
#include "table/table_share.h"

namespace recmill::train {

/// Reads the plan of a run whose store is the placed one, or has its planner make one, and sets
/// `plan`, `placed` and `plan_text`; else does nothing. Errors name placement.plan or
/// placement.planner; a plan for other tables or another number of ranks, or of more memory than
/// [placement] says that a device has, is a bad request.
Status place_tables(ResolvedRun& run, Files& files);

/// Whether the run's rows are stored where a plan of a file says.
bool has_plan_file(const RunOptions& options);

/// What a rank holds of each table; of the placed store, after place_tables().
std::vector<table::TableShare> shares_of(const ResolvedRun& run, int rank);

/// [placement] as the store takes it.
store::ShardedOptions sharded_options(const ResolvedRun& run);

}  // namespace recmill::train
