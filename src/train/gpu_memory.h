// SPDX-License-Identifier: Apache-2.0
// What a run takes of its GPU's memory, and pins for it of the host's, before anything is
// allocated.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "kernels/schedule/schedule.h"
#include "store/gpu_memory.h"
#include "store/held_tables.h"
#include "train/resolved_run.h"

namespace recmill::train {

/// Where the rows of a rank stand, and what it takes then.
struct GpuPlan {
  int rank = 0;
  store::HeldTables held;       // of the rank
  std::vector<GpuMemory> rows;  // [tables]
  store::GpuLedger need;
};

/// Of the ranks that have one GPU, of whose memory `usable` bytes are for all of them: where
/// gpu.rows is "fit", each has an equal share. Certain are rows and parameters, and what batches
/// take where gpu_batches() are. Estimates, rather above than below: what batches of histories
/// take, what LibTorch keeps between layers, and columns that are preprocessed. Left out is what
/// the driver and LibTorch take for themselves and for kernels, and what bags of many ids take
/// where only the data says how many. `pool`: schedules of lookups; empty: the default ones.
std::vector<GpuPlan> plan_gpu(const ResolvedRun& run, int64_t usable, std::span<const int> ranks,
                              std::span<const kernels::Schedule> pool = {});

/// Refuses plans of the ranks of one GPU that together take more for certain than the usable bytes
/// of its memory, in one line that names what is largest.
Status check_gpu_memory(const ResolvedRun& run, std::span<const GpuPlan> plans, int64_t usable);

}  // namespace recmill::train
