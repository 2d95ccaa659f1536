// SPDX-License-Identifier: Apache-2.0
// Slots of rows that were made on a GPU, and counts of far ones that were found there.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/gpu/gpu.h"
#include "kernels/codegen/gpu/gpu_code.h"
#include "kernels/near_rows/gpu_near_rows_arguments.h"

namespace recmill::kernels {

/// One text of two kernels of gpu::kNearThreads threads a block, whose arguments are a
/// gpu::MapRowsArguments and a gpu::CountFarArguments.
std::vector<codegen::GpuSource> gpu_near_rows_sources(const std::string& made_by);

class GpuNearRows {
 public:
  /// Compiles and loads the kernels. The GPU outlives this. Fails as `compile`.
  static Result<GpuNearRows> make(Gpu& gpu, const codegen::CompileForGpu& compile);

  /// Enqueues NearRows::slot() of all lookups, and adds how many are of far rows to `far`, of the
  /// GPU.
  Status map(std::span<const gpu::MappedFeature> features, u64* far, GpuStream& stream) const;
  /// Enqueues the counts of far slots among those that were found.
  Status count_far(std::span<const gpu::CountedTable> tables, GpuStream& stream) const;

 private:
  explicit GpuNearRows(Gpu& gpu) : gpu_(&gpu) {}

  Gpu* gpu_;
  std::vector<codegen::GpuCode> codes_;
  GpuKernel map_, count_;
};

}  // namespace recmill::kernels
