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

/// With `usable` bytes of the GPU's memory. Certain are rows and parameters, and what batches take
/// where gpu_batches() are. Estimates, rather above than below: what batches of histories take,
/// what LibTorch keeps between layers, and columns that are preprocessed. Left out is what the
/// driver and LibTorch take for themselves and for kernels, and what bags of many ids take where
/// only the data says how many. `pool`: schedules of lookups; empty: the default ones. Ranks that
/// have the same GPU know nothing of each other.
GpuPlan plan_gpu(const ResolvedRun& run, int64_t usable, int rank,
                 std::span<const kernels::Schedule> pool = {});

/// Refuses a plan that takes more for certain than the usable bytes of the GPU's memory, in one
/// line that names what is largest.
Status check_gpu_memory(const ResolvedRun& run, const GpuPlan& plan, int64_t usable);

}  // namespace recmill::train
