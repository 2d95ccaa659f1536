// SPDX-License-Identifier: Apache-2.0
// Copies records of rows to the slots of tables in a GPU's memory, and back.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/gpu/gpu.h"
#include "kernels/codegen/gpu/gpu_code.h"
#include "kernels/row_copy/gpu_record_copy_arguments.h"

namespace recmill::kernels {

/// One kernel of gpu::kRecordThreads threads a block, whose argument is a gpu::RecordCopyArguments.
codegen::GpuSource gpu_record_copy_source(const std::string& made_by);

class GpuRecordCopier {
 public:
  enum class Way { to_slots, from_slots };

  /// Compiles and loads the kernel. The GPU outlives this. Fails as `compile`.
  static Result<GpuRecordCopier> make(Gpu& gpu, const codegen::CompileForGpu& compile);

  /// Enqueues the copies, as few launches as hold the lists. Empty lists are none.
  Status copy(std::span<const gpu::RecordList> lists, Way way, GpuStream& stream) const;

 private:
  explicit GpuRecordCopier(Gpu& gpu) : gpu_(&gpu) {}

  Gpu* gpu_;
  std::vector<codegen::GpuCode> codes_;
  GpuKernel kernel_;
};

}  // namespace recmill::kernels
