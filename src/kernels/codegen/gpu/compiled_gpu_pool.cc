// SPDX-License-Identifier: Apache-2.0
#include "kernels/codegen/gpu/compiled_gpu_pool.h"

#include <algorithm>

namespace recmill::kernels::codegen {
namespace {

GpuPoolPlace place_of(const std::vector<GpuPoolSource>& sources, const PoolFunction& function) {
  for (size_t k = 0; k < sources.size(); ++k) {
    const auto found = std::ranges::find(sources[k].functions, function);
    if (found == sources[k].functions.end()) continue;
    const auto kernel = find_gpu_pool_kernel(function.schedule);
    return {k, found - sources[k].functions.begin(), kernel->of->parts(kernel->values),
            kernel->of->admits};
  }
  RECMILL_CHECK(false, "a function that was not generated");
}

/// What runs where the schedule does not admit a batch's bags.
PoolFunction otherwise(const PoolFunction& function) {
  RowStorage rows;
  rows.dim = function.dim;
  rows.stride = function.row_bytes;
  rows.precision = function.precision;
  PoolFunction made = function;
  made.schedule = default_gpu_pool_schedule(function.pooling, rows);
  return made;
}

}  // namespace

PoolFunction gpu_pool_function(Schedule schedule, const RowStorage& rows, Pooling pooling,
                               bool weighted) {
  PoolFunction function;
  function.schedule = std::move(schedule);
  function.dim = rows.dim;
  function.row_bytes = rows.stride;
  function.precision = rows.precision;
  function.pooling = pooling;
  function.weighted = weighted;
  return function;
}

Result<std::vector<GpuPoolSource>> fused_gpu_sources(std::span<const PoolFunction> features,
                                                     const GpuPoolSourceOptions& options) {
  std::vector<PoolFunction> functions;
  for (const PoolFunction& feature : features) {
    RECMILL_ASSIGN_OR_RETURN(const auto kernel, find_gpu_pool_kernel(feature.schedule));
    functions.push_back(feature);
    if (kernel.of->admits != nullptr) functions.push_back(otherwise(feature));
  }
  return gpu_pool_sources(functions, options);
}

Result<CompiledGpuPool> compile_gpu_pool(std::span<const GpuPoolRequest> features,
                                         const GpuPoolSourceOptions& options, bool exactly,
                                         const CompileForGpu& compile, Gpu& gpu) {
  std::vector<PoolFunction> functions;
  for (const GpuPoolRequest& feature : features) functions.push_back(feature.function);
  CompiledGpuPool made;
  RECMILL_ASSIGN_OR_RETURN(made.sources, fused_gpu_sources(functions, options));
  const std::vector<GpuSource> texts(made.sources.begin(), made.sources.end());
  RECMILL_ASSIGN_OR_RETURN(made.codes, compile(texts));
  std::vector<GpuPoolLaunched> kernels;
  for (GpuCode& code : made.codes) {
    const int64_t unused = exactly ? shared_that_leaves(gpu.properties(), code.resources,
                                                        gpu::kBlockThreads, options.blocks)
                                   : 0;
    code.code.most_dynamic_shared = static_cast<int>(unused);
    RECMILL_ASSIGN_OR_RETURN(auto kernel, gpu.load(code.code));
    kernels.push_back({std::move(kernel), unused});
  }
  std::vector<GpuPooledFeature> pooled;
  for (const GpuPoolRequest& feature : features) {
    RECMILL_CHECK(feature.function.two_memories == (feature.near != nullptr), feature.name);
    const GpuPoolPlace chosen = place_of(made.sources, feature.function);
    pooled.push_back(
        {feature.bags, feature.function.dim, feature.function.weighted, feature.rows, feature.name,
         chosen,
         chosen.admits == nullptr ? chosen : place_of(made.sources, otherwise(feature.function)),
         feature.far, feature.near});
  }
  made.pool = std::make_unique<GpuFusedPool>(gpu, std::move(kernels), std::move(pooled));
  return made;
}

}  // namespace recmill::kernels::codegen
