// SPDX-License-Identifier: Apache-2.0
// Tunes a configuration's lookups on a GPU.
#pragma once

#include "base/files.h"
#include "base/status.h"
#include "kernels/tune/record.h"
#include "run/resolved_run.h"
#include "tuning/tuning.h"

namespace recmill::train {

/// Measures, chooses and writes the record. Of the request budget_seconds, finalist_rounds and
/// if_drifted are the CPU's alone, and rounds no emulated GPU's; compiled kernels are cached at
/// once, timings are saved at the end. Fails as GpuLookups::make(), and, before that, where the
/// record cannot be written.
Result<kernels::tune::TuningRecord> tune_for_gpu(const ResolvedRun& run,
                                                 const TuningRequest& request, Files& files);

}  // namespace recmill::train
