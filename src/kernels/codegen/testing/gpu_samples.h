// SPDX-License-Identifier: Apache-2.0
// Fused kernels for GPUs that tests run: each template of schedules is in one, each precision,
// pooling and way to find a schedule.
#pragma once

#include <string>
#include <vector>

#include "kernels/codegen/gpu/gpu_pool_source.h"

namespace recmill::kernels::codegen {

struct GpuSample {
  std::string name;
  std::vector<PoolFunction> functions;
  GpuPoolSourceOptions options;
  int64_t longest = 5;  // lookups of a bag; -1: exactly one each
};

const std::vector<GpuSample>& gpu_samples();

/// Its one source.
GpuPoolSource source_of(const GpuSample& sample);

}  // namespace recmill::kernels::codegen
