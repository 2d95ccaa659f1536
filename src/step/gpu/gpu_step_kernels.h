// SPDX-License-Identifier: Apache-2.0
// The loss and the dense optimizer on a GPU: what add_log_loss() and DenseOptimizer compute, the
// optimizer bit for bit where no gradient is clipped.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "device/gpu/gpu.h"
#include "device/gpu/staged_arrays.h"
#include "kernels/codegen/gpu/gpu_code.h"
#include "step/gpu/gpu_step_arguments.h"
#include "step/optimizer/dense_optimizer.h"

namespace recmill::train {

class GpuStepKernels {
 public:
  /// Compiles and loads them. The GPU outlives this, the optimizer too. Fails as `compile`.
  static Result<GpuStepKernels> make(Gpu& gpu, const DenseOptimizer& optimizer, int64_t parameters,
                                     const kernels::codegen::CompileForGpu& compile);

  /// What make() takes: `states` of the optimizer, and stretches of parameters that are trained.
  static GpuBytes need(int64_t parameters, int64_t states, int64_t stretches);

  /// Blocks, and sums, of log_loss().
  static int64_t loss_blocks(int64_t samples);
  /// Enqueues the loss of `of.samples` > 0 samples: its parts are at of.sums [loss_blocks()].
  Status log_loss(const gpu::LogLossArguments& of, GpuStream& stream);

  /// Enqueues the sum over ranks.
  Status sum_of_ranks(const gpu::SumOfRanksArguments& of, GpuStream& stream) const;

  /// Copies the optimizer's state to the GPU.
  Status load_state(GpuStream& stream);
  /// Copies it back to `optimizer`. Both wait for the stream.
  Status store_state(DenseOptimizer& optimizer, GpuStream& stream);

  /// Enqueues one step of all parameters, [parameters] as `gradient`.
  Status update(float* parameters, const float* gradient, int64_t iteration,
                double learning_rate_scale, GpuStream& stream);

 private:
  GpuStepKernels(Gpu& gpu, const DenseOptimizer& optimizer, int64_t parameters)
      : gpu_(&gpu), optimizer_(&optimizer), parameters_(parameters) {}
  Status allocate();
  int64_t blocks(int64_t count) const;

  Gpu* gpu_;
  const DenseOptimizer* optimizer_;
  int64_t parameters_;
  std::vector<kernels::codegen::GpuCode> codes_;
  GpuKernel log_loss_, squares_, update_, sum_of_ranks_;
  std::vector<GpuBuffer> state_;  // as DenseOptimizer::state()
  GpuBuffer stretches_, sums_;
  PinnedBuffer staging_;  // [parameters]
};

}  // namespace recmill::train
