// SPDX-License-Identifier: Apache-2.0
// From a model's tables, features and their schedules to the source of a compiled operator
// (pool_op.h). Pure: the same gives the same texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/codegen/gpu/gpu_pool_source.h"
#include "kernels/codegen/library_cache.h"
#include "kernels/codegen/pool_source.h"
#include "kernels/embedding_pool/fused_pool.h"
#include "pool_op/torch_package.h"

namespace recmill::kernels::codegen {

/// A table, whose rows follow each other without a gap, as in a tensor of [rows][dim].
struct PoolOpTable {
  std::string name;
  int64_t dim = 0;
  RowPrecision precision = RowPrecision::float32;
};

/// Their layout.
RowStorage rows_of(const PoolOpTable& table);

struct PoolOpFeature {
  std::string name;
  int32_t table = 0;
  Pooling pooling = Pooling::sum;
  bool weighted = false;
  PoolKernel kernel = {};  // on the CPU; null `of`, or one without generated form: the default
  Schedule gpu = {};       // where there are kernels for GPUs
};

/// A fused kernel for GPUs, and its binaries.
struct PoolOpGpuKernel {
  GpuPoolSource source;
  struct Binary {
    std::string architecture;
    std::vector<std::byte> cubin;
    int64_t dynamic_shared = 0;  // bytes of a block that launches ask for
  };
  std::vector<Binary> binaries;
};

struct PoolOp {
  std::string name;         // of the operator: a C identifier
  std::string made_by;      // program and workload, for the reader of the source
  std::string description;  // what recmill::NAME_description() returns
  std::vector<PoolOpTable> tables;
  std::vector<PoolOpFeature> features;
  int64_t tile = kWholeFeature;
  std::vector<PoolOpGpuKernel> gpu_kernels;  // of gpu_functions(); empty: not for GPUs
  std::string gpu_driver = "libcuda.so.1";
};

/// What is generated for the CPU: the chosen schedules, and default ones for bags that these are
/// not right for.
std::vector<PoolFunction> cpu_functions(const PoolOp& op);

/// What kernels for GPUs must have been generated for: the chosen schedules, and default ones
/// beside those that are not right for all bags.
std::vector<PoolFunction> gpu_functions(const PoolOp& op);

/// PyTorch's name of the operator's arguments and result.
std::string pool_op_schema(const std::string& name);

/// The library's sources; `torch` null: without registration, for who calls recmill_pool_op().
/// Fails, naming it, on a schedule for GPUs that none of the kernels has.
Result<LibrarySource> pool_op_source(const PoolOp& op, const PoolSourceOptions& options,
                                     const TorchPackage* torch);

}  // namespace recmill::kernels::codegen
