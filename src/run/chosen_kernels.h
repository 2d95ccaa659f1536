// SPDX-License-Identifier: Apache-2.0
// From a run's schedules to the kernels of its store on a CPU.
#pragma once

#include "base/files.h"
#include "base/status.h"
#include "run/resolved_run.h"
#include "run/schedules.h"
#include "store/tables/rank_tables.h"

namespace recmill::train {

/// The kernels of these schedules, without generated code. Fails where a file of [kernels]
/// templates cannot be compiled.
Result<store::StoreKernels> kernels_of(const Schedules& schedules, const ResolvedRun& run,
                                       Files& files = posix_files());

/// The kernels that [kernels] asks for, of choose_schedules(), with generated code where it is
/// wanted.
Result<store::StoreKernels> choose_kernels(const ResolvedRun& run, Files& files);

}  // namespace recmill::train
