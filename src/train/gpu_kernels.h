// SPDX-License-Identifier: Apache-2.0
// A run's kernels for GPUs compiled beforehand, where no GPU need be: the fused kernel of its
// features, and those that a tuner would time its candidates with.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json_lines.h"
#include "base/status.h"
#include "device/gpu/gpu_properties.h"
#include "train/progress.h"
#include "train/resolved_run.h"

namespace recmill::train {

struct GpuKernelsRequest {
  std::string architecture = "sm_90";
  uint64_t seed = 1000;  // of the batches that are looked at
  Progress::Style progress = Progress::Style::silent;
  const std::atomic<bool>* interrupted = nullptr;
};

/// One compiled kernel.
struct GpuKernelReport {
  int64_t schedules = 0;  // distinct ones
  int64_t wanted = 1;     // blocks of a multiprocessor that registers were limited for
  KernelResources resources;
  int64_t spilled = 0;  // bytes of a thread
  int blocks = 0;       // of a multiprocessor, that fit
};

struct GpuKernelsReport {
  GpuProperties gpu;
  int64_t features = 0, shapes = 0, candidates = 0;
  std::vector<GpuKernelReport> fused, candidate_kernels;
  int64_t compiled = 0;  // that were not there yet
  double seconds = 0;
};

/// Compiles into the folder of compiled code what is not there yet: for each shape of features
/// (their rows, pooling and kind of bags) kernels of all its candidates, for each number of blocks
/// of a multiprocessor that is compared (kernels::tune::gpu_occupancies()), and the fused kernel of
/// all features with the schedules that nobody tuned. Fails as CubinCache::load.
Result<GpuKernelsReport> compile_gpu_kernels(const ResolvedRun& run,
                                             const GpuKernelsRequest& request, Files& files);

/// A line a figure.
Json summary_of(const GpuKernelsReport& report);

}  // namespace recmill::train
