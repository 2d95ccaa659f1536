// SPDX-License-Identifier: Apache-2.0
// The source of the kernels that find distinct rows on a GPU (kernels/distinct_rows/cuda_*.cuh).
#pragma once

#include <string>
#include <vector>

#include "kernels/codegen/gpu/gpu_source.h"
#include "kernels/distinct_rows/gpu_distinct_rows.h"

namespace recmill::kernels::codegen {

/// One text that has a kernel for each DistinctStep, and in their order their entries, whose
/// argument is a gpu::DistinctArguments. Pure.
std::vector<GpuSource> gpu_distinct_sources(RowKeys keys, const std::string& made_by);

}  // namespace recmill::kernels::codegen
