// SPDX-License-Identifier: Apache-2.0
// A fused embedding_pool from schedules to kernels that are ready to be launched.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/codegen/gpu/gpu_code.h"
#include "kernels/codegen/gpu/gpu_pool_source.h"
#include "kernels/embedding_pool/gpu_fused_pool.h"
#include "kernels/row_storage.h"

namespace recmill::kernels::codegen {

/// What is generated for features that look up such rows.
PoolFunction gpu_pool_function(Schedule schedule, const RowStorage& rows, Pooling pooling,
                               bool weighted);

/// The fused kernels of features whose lookups are these: where a schedule is not right for all
/// bags, with the default one beside it. Fails as gpu_pool_sources().
Result<std::vector<GpuPoolSource>> fused_gpu_sources(std::span<const PoolFunction> features,
                                                     const GpuPoolSourceOptions& options);

struct GpuPoolRequest {  // a feature
  PoolFunction function;
  const u8* rows = nullptr;  // of the GPU
  size_t bags = 0;           // GpuPooledFeature::bags
  std::string name = {};     // that errors say
  // Of PoolFunction::two_memories, as GpuPooledFeature has them.
  const u8* far = nullptr;
  const NearRows* near = nullptr;
};

struct CompiledGpuPool {
  std::vector<GpuPoolSource> sources;
  std::vector<GpuCode> codes;  // beside them; what the pool runs
  std::unique_ptr<GpuFusedPool> pool;
};

/// Compiles and loads fused_gpu_sources() of all features. `exactly`: not more blocks than
/// `options.blocks` fit an SM either, as far as shared memory that nobody uses can do
/// that (RecFlex, section IV-A2). Fails as gpu_pool_sources() and `compile`.
Result<CompiledGpuPool> compile_gpu_pool(std::span<const GpuPoolRequest> features,
                                         const GpuPoolSourceOptions& options, bool exactly,
                                         const CompileForGpu& compile, Gpu& gpu);

}  // namespace recmill::kernels::codegen
