// SPDX-License-Identifier: Apache-2.0
// Sums over ranks of what is in the memory of their GPUs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "comm/gpu/gpu_exchange.h"
#include "device/gpu/gpu.h"
#include "step/gpu/gpu_step_kernels.h"

namespace recmill::train {

/// Each rank adds a part of the values, in the order of ranks, and hands the sum to all: it has the
/// same bits everywhere, and a rank sends less than twice what it has.
class GpuRankSum {
 public:
  /// Of up to `most` values. All of them outlive this. Fails where memory is short.
  static Result<std::unique_ptr<GpuRankSum>> make(Gpu& gpu, GpuExchange& exchange, int rank,
                                                  int ranks, int64_t most,
                                                  const GpuStepKernels& kernels);
  /// Bytes of the GPU that make() takes.
  static int64_t need(int ranks, int64_t most);

  /// Collective, as GpuExchange: values [count] become their sums over ranks.
  Status add(float* values, int64_t count, GpuStream& stream);

 private:
  GpuRankSum(GpuExchange& exchange, int rank, int ranks, const GpuStepKernels& kernels)
      : exchange_(exchange), rank_(rank), ranks_(ranks), kernels_(kernels) {}

  GpuExchange& exchange_;
  const int rank_, ranks_;
  const GpuStepKernels& kernels_;
  GpuBuffer parts_;  // [ranks][part]: of each rank, of what this one adds
};

}  // namespace recmill::train
