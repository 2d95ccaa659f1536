// SPDX-License-Identifier: Apache-2.0
// Copies rows from place to place within a GPU's memory, where they may be at other distances.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/gpu/gpu.h"
#include "kernels/codegen/gpu/gpu_code.h"
#include "kernels/row_copy/gpu_row_copy_arguments.h"

namespace recmill::kernels {

/// One kernel of gpu::kCopyThreads threads a block, whose argument is a gpu::RowCopyArguments.
codegen::GpuSource gpu_row_copy_source(const std::string& made_by);

class GpuRowCopier {
 public:
  /// Compiles and loads the kernel. The GPU outlives this. Fails as `compile`.
  static Result<GpuRowCopier> make(Gpu& gpu, const codegen::CompileForGpu& compile);

  /// Enqueues the copies, as few launches as hold them; no place is written twice, or read and
  /// written. Those without rows are none.
  Status copy(std::span<const gpu::RowCopy> copies, GpuStream& stream) const;

 private:
  explicit GpuRowCopier(Gpu& gpu) : gpu_(&gpu) {}

  Gpu* gpu_;
  std::vector<codegen::GpuCode> codes_;
  GpuKernel kernel_;
};

}  // namespace recmill::kernels
