// SPDX-License-Identifier: Apache-2.0
// Statistics of the training rows that operations on dense columns need before the first batch.
#pragma once

#include "base/files.h"
#include "base/status.h"
#include "checkpoint/reader.h"
#include "comm/world.h"
#include "run/folder/progress.h"
#include "run/job_setting.h"
#include "run/rank.h"
#include "run/resolved_run.h"

namespace recmill::train {

/// Finds what the ops of `run.graph` lack, where they lack any, over all training rows in the order
/// of the data, unshuffled and before negatives are left out: rank 0 reads them, once for each
/// "standardize" that follows another, and tells the others. Collective over the processes.
Status fit_columns(ResolvedRun& run, Way way, const JobIdentity& identity, World& world,
                   Files& files, Progress::Style style);

/// Takes what the ops lack from a checkpoint, where it has that.
void take_fitted(const checkpoint::Reader& checkpoint, ResolvedRun& run);

}  // namespace recmill::train
