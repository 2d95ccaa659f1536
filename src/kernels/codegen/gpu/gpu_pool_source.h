// SPDX-License-Identifier: Apache-2.0
// From chosen schedules to the source of a fused kernel for GPUs (RecFlex, section IV-B). Pure: the
// same schedules give the same text.
//
// The text includes nothing that is not in it, so that NVRTC compiles it as it is; for the emulator
// the system's compiler does, with the headers of emulated_headers(). Each distinct pair of a
// schedule and what is constant of a feature becomes one type, shared by all features of that pair;
// a block goes to its feature's by branches, which the compiler fills with the bodies themselves,
// or by a table of pointers. Arguments of features come by an array. Shared memory of all schedules
// lies in one union.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/codegen/dispatch.h"
#include "kernels/codegen/gpu/gpu_source.h"
#include "kernels/codegen/pool_function.h"

namespace recmill::kernels::codegen {

struct GpuPoolSourceOptions {
  std::string made_by = {};  // program and workload, for the reader of the source
  Dispatch dispatch = Dispatch::branches;
  int64_t blocks = 1;            // of an SM, at least: what registers are limited by
  int64_t most_functions = 100;  // of one source: beyond, compilers take minutes
  bool timed = false;            // each block writes what it took to PoolArguments::clocks
  bool listed = false;           // a block of the grid works through PoolArguments::begins
};

/// One kernel of 256 threads a block, whose argument is a gpu::PoolArguments.
struct GpuPoolSource : GpuSource {      // its entry has another name for another text
  std::vector<PoolFunction> functions;  // gpu::PoolFeature::schedule is the place in here
  bool listed = false;                  // GpuPoolSourceOptions
  bool operator==(const GpuPoolSource&) const = default;
};

/// Fails, naming it, on a schedule that has no template for GPUs or that does not go with the
/// function's rows.
Status check_gpu_function(const PoolFunction& of);

/// Kernels of at most `most_functions` functions, those of like schedules together; none where
/// nothing is wanted. `wanted` may repeat itself. Fails as check_gpu_function().
Result<std::vector<GpuPoolSource>> gpu_pool_sources(std::span<const PoolFunction> wanted,
                                                    const GpuPoolSourceOptions& options);

}  // namespace recmill::kernels::codegen
