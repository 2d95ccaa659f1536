// SPDX-License-Identifier: Apache-2.0
// Runs a fused kernel for GPUs on the emulator.
#pragma once

#include <string>

#include "device/emulation/emulator.h"
#include "kernels/codegen/gpu_pool_source.h"
#include "kernels/embedding_pool/gpu_pool_arguments.h"

namespace recmill::kernels::codegen {

using GpuPoolEntry = void (*)(gpu::PoolArguments);

/// The kernel of a sample; null: there is none of that name.
GpuPoolEntry gpu_sample_entry(const std::string& name);

struct GpuPoolRun {
  int64_t samples = 70;
  int64_t longest = 5;  // lookups of a bag; -1: exactly one each
  uint64_t seed = 1;
  emulation::Turns turns;
};

/// Pools random bags, a feature for each function of the source. Empty: each is what the reference
/// gives, bit for bit where the schedule keeps the order of sums, and nothing else was written;
/// else what is wrong.
std::string difference_from_reference(const GpuPoolSource& source, GpuPoolEntry entry,
                                      const GpuPoolRun& run);

}  // namespace recmill::kernels::codegen
