// SPDX-License-Identifier: Apache-2.0
// The GPU of a run, and its compiler of kernels.
#pragma once

#include <memory>

#include "base/files.h"
#include "base/status.h"
#include "comm/communicator.h"
#include "device/emulation/emulator.h"
#include "device/gpu/gpu.h"
#include "device/pool.h"
#include "kernels/codegen/gpu_code.h"
#include "train/resolved_run.h"

namespace recmill::train {

/// The GPU of options.device = "cuda", or the one that the CPU plays, which adds up what kernels
/// need in `usage` where it is given (device/gpu/emulated_driver.h). `number`: of the machine's
/// GPUs, behind the last of which comes the first again. Fails in one line without a driver, or
/// with one that is too old.
Result<std::unique_ptr<Gpu>> open_gpu(const RunOptions& options, int number = 0,
                                      emulation::Usage* usage = nullptr);

/// A rank among those of its host.
struct RankOnHost {
  int number = 0;  // that of its GPU, too
  int ranks = 1;
};
/// Collective.
Result<RankOnHost> rank_on_host(Communicator& communicator);

/// Compiles kernels for that GPU into the run's folder of compiled code. The pool and the files
/// outlive it.
Result<kernels::codegen::CompileForGpu> compiler_for(const ResolvedRun& run, DeviceKind device,
                                                     const Gpu& gpu, Pool& pool, Files& files);

}  // namespace recmill::train
