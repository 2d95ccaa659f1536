// SPDX-License-Identifier: Apache-2.0
// The source of a fused row update for GPUs: all tables of a model in one launch, each by device
// code that is made for its rows and its optimizer (kernels/row_update/cuda_update.cuh). Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/codegen/gpu/gpu_source.h"
#include "kernels/row_storage.h"
#include "kernels/row_update/gpu_update_arguments.h"
#include "schema/table_spec.h"
#include "table/optimizers/row_step.h"

namespace recmill::table {

/// What is constant of one table's updates.
struct GpuUpdateFunction {
  int64_t dim = 0;
  int64_t record_bytes = 0;   // from record to record
  int64_t element_state = 0;  // bytes from a record's begin to its state by element
  RowPrecision precision = RowPrecision::float32;
  OptimizerKind optimizer = OptimizerKind::sgd;
  BiasCorrection correction = BiasCorrection::global;  // of adam
  int levels = kernels::gpu::kMostLevels;              // of the tree over slices, at most
  bool two_memories = false;  // some rows are near, others far (kernels/near_rows)
  auto operator<=>(const GpuUpdateFunction&) const = default;
};

/// What updates such rows, of batches of at most so many slices.
GpuUpdateFunction gpu_update_function(const kernels::RowStorage& rows,
                                      const RowOptimizerOptions& optimizer, int slices,
                                      bool two_memories = false);

/// One kernel of gpu::kUpdateThreads threads a block, whose argument is a gpu::UpdateArguments.
struct GpuUpdateSource : kernels::codegen::GpuSource {
  std::vector<GpuUpdateFunction> functions;  // gpu::UpdateTable::schedule is the place in here
};

/// Kernels of at most `most_functions` functions: the time that a kernel takes to be compiled grows
/// faster than their number. `wanted` may repeat itself.
std::vector<GpuUpdateSource> gpu_update_sources(std::span<const GpuUpdateFunction> wanted,
                                                const std::string& made_by,
                                                int64_t most_functions = 16);

/// The optimizer's formula as of `step`, as gpu::UpdateTable::formula has it.
std::vector<std::byte> formula_bytes(const RowOptimizerOptions& options, const RowStep& step);

}  // namespace recmill::table
