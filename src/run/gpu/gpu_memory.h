// SPDX-License-Identifier: Apache-2.0
// What a run takes of its GPU's memory, and pins for it of the host's, before anything is
// allocated.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/schedule/schedule.h"
#include "run/gpu/gpu_plan.h"
#include "run/resolved_run.h"

namespace recmill::train {

/// Of the ranks that have one GPU, of whose memory `usable` bytes are for all of them: where
/// gpu.rows is "fit", each has an equal share. Certain are rows and parameters, and what batches
/// take where gpu_batches() are. Estimates, rather above than below: what batches of histories
/// take, what LibTorch keeps between layers, and columns that are preprocessed. Left out is what
/// the driver and LibTorch take for themselves and for kernels, and what bags of many ids take
/// where only the data says how many. `pool`: schedules of lookups; empty: the default ones.
std::vector<GpuPlan> plan_gpu(const ResolvedRun& run, int64_t usable, std::span<const int> ranks,
                              std::span<const kernels::Schedule> pool = {});

}  // namespace recmill::train
