// SPDX-License-Identifier: Apache-2.0
// The GPU of a run, and its compiler of kernels.
#pragma once

#include <memory>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "comm/communicator.h"
#include "device/emulation/emulator.h"
#include "device/gpu/gpu.h"
#include "device/thread_pool.h"
#include "kernels/codegen/gpu/gpu_code.h"
#include "preprocess/run/gpu_preprocessor.h"
#include "run/resolved_run.h"

namespace recmill::train {

/// The GPU of options.device = "cuda", or the one that the CPU plays, which adds up what kernels
/// need in `usage` where it is given (device/gpu/emulated_driver.h). `number`: of the machine's
/// GPUs, behind the last of which comes the first again. Fails in one line without a driver, or
/// with one that is too old.
Result<std::unique_ptr<Gpu>> open_gpu(const RunOptions& options, int number = 0,
                                      emulation::Usage* usage = nullptr);

/// Whether layers are computed on the GPU: not bit for bit as on the CPU.
bool layers_are_on_gpu(const RunOptions& options);

/// Whether rows that a GPU reads may be in the host's memory.
bool may_have_far_rows(const RunOptions& options);

/// Who reads the rows of gpu.preprocess: a rank's store on the same GPU, and the host where it
/// sends them to other ranks, looks them up itself, or hands them to a model that reads rows.
preprocess::RowReaders row_readers(const RunOptions& options, int ranks);

/// A rank among those of its host.
struct RankOnHost {
  int number = 0;                // that of its GPU, too
  std::vector<int> ranks = {0};  // of the host, the number-th of which it is
};
/// Collective.
Result<RankOnHost> rank_on_host(Communicator& communicator);

/// GPUs of this machine, which its ranks take in turn; 0: each rank has its own, as the CPU plays
/// them. Fails as open_gpu().
Result<int> gpus_of_machine(DeviceKind device);

/// Fails as open_gpu(), where the run has a GPU: to be known before what takes long.
Status check_gpu(const RunOptions& options);

/// The ranks that have the same GPU as this one, itself among them, where those of its host take
/// `gpus` as gpus_of_machine() says.
std::vector<int> ranks_of_same_gpu(const RankOnHost& place, int gpus);

/// Compiles kernels for that GPU into the run's folder of compiled code. The pool and the files
/// outlive it.
Result<kernels::codegen::CompileForGpu> compiler_for(const ResolvedRun& run, DeviceKind device,
                                                     const Gpu& gpu, ThreadPool& pool,
                                                     Files& files);

/// The GPU of one rank, opened once: whatever of the rank runs there shares its memory, takes its
/// streams and compiles by the same cache.
struct RankGpu {
  RankOnHost place;
  std::shared_ptr<Gpu> gpu;
  kernels::codegen::CompileForGpu compile;
};
/// Collective. Fails as open_gpu() and compiler_for(). The pool and the files outlive it.
Result<RankGpu> open_rank_gpu(const ResolvedRun& run, Communicator& communicator, ThreadPool& pool,
                              Files& files);

}  // namespace recmill::train
