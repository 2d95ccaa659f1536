// SPDX-License-Identifier: Apache-2.0
// A run's kernels for GPUs compiled beforehand, where no GPU need be: all that training loads, and
// those that a tuner would time its candidates with.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json/json_fwd.h"
#include "base/status.h"
#include "device/gpu/gpu_properties.h"
#include "run/folder/progress.h"
#include "run/resolved_run.h"

namespace recmill::train {

struct GpuKernelsRequest {
  std::string architecture = "sm_90";
  uint64_t seed = 1000;  // of the batches that are looked at
  Progress::Style progress = Progress::Style::silent;
  const std::atomic<bool>* interrupted = nullptr;
};

/// One compiled kernel.
struct GpuKernelReport {
  KernelResources resources;
  int64_t spilled = 0;    // bytes of a thread
  int threads = 0;        // of a block
  int blocks = 0;         // of an SM, that are on it at a time
  int64_t schedules = 0;  // of lookups: distinct ones
};

struct GpuKernelsReport {
  GpuProperties gpu;
  std::string record = {};  // whose schedules lookups have; empty: the default ones
  int64_t features = 0, schedules = 0, shapes = 0, candidates = 0;
  std::vector<GpuKernelReport> fused;   // lookups of each rank's features
  std::vector<GpuKernelReport> beside;  // what else training loads
  std::vector<GpuKernelReport> candidate_kernels;
  struct Effort {
    int64_t compiled = 0;  // that were not there yet
    double seconds = 0;
  };
  Effort of_training, in_all;
};

/// Compiles into the folder of compiled code what is not there yet: gpu_sources() of train.ranks
/// ranks, with the schedules of the run's record where one is good for the architecture; for each
/// shape of features (their rows, pooling and kind of bags) kernels of all its candidates, for each
/// number of blocks of an SM that is compared (kernels::tune::gpu_occupancies()); and
/// the default schedules fused, which tuning compares with. Fails as gpu_sources() and
/// CubinCache::load.
Result<GpuKernelsReport> compile_gpu_kernels(const ResolvedRun& run,
                                             const GpuKernelsRequest& request, Files& files);

/// A line a figure.
Json summary_of(const GpuKernelsReport& report);

}  // namespace recmill::train
