// SPDX-License-Identifier: Apache-2.0
// A run whose rows stand on a GPU.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "device/emulation/emulator.h"
#include "device/gpu/gpu.h"
#include "device/pool.h"
#include "kernels/codegen/gpu_code.h"
#include "kernels/tune/record.h"
#include "store/embedding_store.h"
#include "train/resolved_run.h"

namespace recmill::train {

/// The GPU of options.device = "cuda", or the one that the CPU plays, which adds up what kernels
/// need in `usage` where it is given (device/gpu/emulated_driver.h). Fails in one line without a
/// driver, or with one that is too old.
Result<std::unique_ptr<Gpu>> open_gpu(const RunOptions& options, emulation::Usage* usage = nullptr);

/// Compiles kernels for that GPU into the run's folder of compiled code. The pool and the files
/// outlive it.
Result<kernels::codegen::CompileForGpu> compiler_for(const ResolvedRun& run, DeviceKind device,
                                                     const Gpu& gpu, Pool& pool, Files& files);

/// What a tuning record must have been made for to be good for this run on this GPU.
kernels::tune::TunedFor gpu_tuned_for(const ResolvedRun& run, DeviceKind device, const Gpu& gpu);

/// The record's schedule of each feature, and how many blocks of a multiprocessor it was tuned to.
struct GpuSchedules {
  std::vector<kernels::Schedule> pool;  // [features]
  int64_t blocks = 0;
};
/// Fails, naming `source`, where a feature has none or one that is no template's.
Result<GpuSchedules> gpu_schedules(const kernels::tune::TuningRecord& record,
                                   const ResolvedRun& run, const std::string& source);

/// The store of a run with device = "cuda" or "emulated", with the schedules that [kernels] asks
/// for. Fails in one line: as open_gpu(), no compiler of kernels, no tuning record that is good for
/// this run, not enough memory.
Result<std::unique_ptr<store::EmbeddingStore>> make_gpu_store(const ResolvedRun& run, Pool& pool,
                                                              Files& files);

}  // namespace recmill::train
