// SPDX-License-Identifier: Apache-2.0
// Runs a fused kernel on the GPU of the tests.
#pragma once

#include <string>

#include "device/emulation/emulator.h"
#include "kernels/codegen/gpu/gpu_pool_source.h"
#include "kernels/embedding_pool/gpu_pool_arguments.h"

namespace recmill::kernels::codegen {

/// A kernel as the emulator calls it.
using EmulatedEntry = void (*)(const void*);

/// The kernel of a sample; null: there is none of that name.
EmulatedEntry gpu_sample_entry(const std::string& name);

struct GpuPoolRun {
  int64_t samples = 70;
  int64_t longest = 5;  // lookups of a bag; -1: exactly one each
  uint64_t seed = 1;
  bool timed = false;      // GpuPoolSourceOptions of the source
  emulation::Turns turns;  // on the emulator
};

/// Pools random bags, a feature for each function of the source. Empty: each is what the reference
/// gives, bit for bit where the schedule keeps the order of sums, and nothing else was written;
/// else what is wrong. `entry`: the source's kernel.
std::string difference_from_reference(const GpuPoolSource& source, EmulatedEntry entry,
                                      const GpuPoolRun& run);

}  // namespace recmill::kernels::codegen
