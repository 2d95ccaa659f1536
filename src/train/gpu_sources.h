// SPDX-License-Identifier: Apache-2.0
// The sources of all kernels that a run's ranks load on GPUs, for who compiles them beforehand.
// Pure.
#pragma once

#include <vector>

#include "base/status.h"
#include "kernels/codegen/gpu_pool_source.h"
#include "kernels/codegen/gpu_source.h"
#include "train/resolved_run.h"

namespace recmill::train {

struct LaunchedSource {
  kernels::codegen::GpuSource source;
  int threads = 0;  // of a block
};

/// Each once, though several ranks load it.
struct GpuSources {
  std::vector<kernels::codegen::GpuPoolSource> lookups;  // fused, with the default schedules
  std::vector<LaunchedSource> others;  // distinct rows, updates, and what the options ask for:
                                       // preprocessing, a training step, rows between GPUs
};

/// Fails as kernels::codegen::gpu_pool_sources().
Result<GpuSources> gpu_sources(const ResolvedRun& run);

}  // namespace recmill::train
