// SPDX-License-Identifier: Apache-2.0
// The sources of all kernels that a run's ranks load on GPUs, for who compiles them beforehand.
// Pure.
#pragma once

#include <vector>

#include "base/status.h"
#include "kernels/codegen/gpu/gpu_pool_source.h"
#include "kernels/codegen/gpu/gpu_source.h"
#include "run/resolved_run.h"
#include "run/schedules.h"
#include "store/gpu/gpu_store_sources.h"

namespace recmill::train {

struct LaunchedSource {
  kernels::codegen::GpuSource source;
  int threads = 0;  // of a block
};

/// Each once, though several ranks load it.
struct GpuSources {
  std::vector<kernels::codegen::GpuPoolSource> lookups;  // fused
  std::vector<LaunchedSource>
      others;  // distinct rows, updates, and what the options ask for:
               // preprocessing, a training step, rows between GPUs or to a cache
};

/// What a store of all features has, but for who compiles it.
store::GpuStoreKernels gpu_store_kernels(const ResolvedRun& run, const Schedules& schedules);

/// Fails as kernels::codegen::fused_gpu_sources().
Result<GpuSources> gpu_sources(const ResolvedRun& run, const Schedules& schedules);

}  // namespace recmill::train
