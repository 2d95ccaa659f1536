// SPDX-License-Identifier: Apache-2.0
// The hot set of a run whose store goes by one.
#pragma once

#include "base/files.h"
#include "base/status.h"
#include "comm/world.h"
#include "run/folder/progress.h"
#include "run/job_setting.h"
#include "run/resolved_run.h"

namespace recmill::train {

/// Whether some store of the run goes by its hot set.
bool stores_by_hot_set(const RunOptions& options);

/// Bytes that each rank has for hot rows where hotset.bytes is 0: nine tenths of what is free on
/// its GPU beside all else, as LibTorch and the driver take some that no plan knows; or an equal
/// share of the machine's memory that is free.
Result<int64_t> free_for_hot_rows(const ResolvedRun& run);

/// Sets run.hot_set where stores_by_hot_set(), for run.ranks. Collective over the processes of the
/// world. Errors name the key.
Status choose_hot_rows(ResolvedRun& run, const JobIdentity& identity, World& world, Files& files,
                       Progress::Style style);

}  // namespace recmill::train
