// SPDX-License-Identifier: Apache-2.0
// The sources of all kernels that a run's ranks load on GPUs, for who compiles them beforehand.
// Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "kernels/codegen/gpu/gpu_pool_source.h"
#include "kernels/codegen/gpu/gpu_source.h"
#include "kernels/schedule/schedule.h"
#include "run/resolved_run.h"

namespace recmill::train {

/// The schedule of each feature, and how many blocks of an SM they were tuned to.
struct GpuSchedules {
  std::vector<kernels::Schedule> pool = {};  // [features]; empty: the default ones
  int64_t blocks = 0;                        // 0: any number
};

struct LaunchedSource {
  kernels::codegen::GpuSource source;
  int threads = 0;  // of a block
};

/// Each once, though several ranks load it.
struct GpuSources {
  std::vector<kernels::codegen::GpuPoolSource> lookups;  // fused
  std::vector<LaunchedSource> others;  // distinct rows, updates, and what the options ask for:
                                       // preprocessing, a training step, rows between GPUs
};

/// Fails as kernels::codegen::fused_gpu_sources().
Result<GpuSources> gpu_sources(const ResolvedRun& run, const GpuSchedules& schedules);

}  // namespace recmill::train
