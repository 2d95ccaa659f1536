// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"

namespace recmill {

/// What a GPU is, as far as kernels are planned by it. Sizes in bytes.
struct GpuProperties {
  std::string name;
  int number = 0;                     // of the machine's GPUs that the process sees
  std::array<std::byte, 16> id = {};  // which no other GPU has; all 0: not known
  int compute = 0;                    // capability times ten: 90 is sm_90
  int sms = 0;
  int64_t memory = 0;
  int most_threads = 2048;  // of an SM
  int most_blocks = 32;
  int64_t registers = 65536;
  int64_t shared = 0;           // of an SM
  int64_t shared_of_block = 0;  // at most
  int64_t shared_reserved = 0;  // that each block takes beside its own
  double memory_rate = 0;       // bytes a second of its memory by its data sheet; 0: not known
};

/// "sm_80, sm_86": those of gpu_of_architecture().
std::string known_architectures();

/// A GPU that need not be there, to compile and to plan for: of "sm_80" an A100, of "sm_86" an A10,
/// of "sm_89" an L4, of "sm_90" an H100, of "sm_100" a B200. Fails, naming those that are known.
Result<GpuProperties> gpu_of_architecture(const std::string& architecture);

/// What one block of a kernel takes.
struct KernelResources {
  std::string name;
  int registers = 0;   // of a thread
  int64_t stack = 0;   // of a thread: spills and arrays that are indexed
  int64_t shared = 0;  // of a block, without what its launch asks for
  bool operator==(const KernelResources&) const = default;
};

/// Fails, naming the kernel, where no block of the GPU has so many bytes of shared memory.
Status check_shared(const std::string& kernel, int64_t bytes, const GpuProperties& gpu);

/// Blocks of so many threads that an SM holds at a time; 0: not one. `dynamic_shared`:
/// bytes that the launch asks for.
int blocks_per_sm(const GpuProperties& gpu, const KernelResources& kernel, int threads,
                  int64_t dynamic_shared);

/// The share of an SM's threads that so many blocks of it take.
double occupancy_of(const GpuProperties& gpu, int blocks, int threads);

/// Bytes of shared memory that a launch asks for in vain, so that not more than `blocks` blocks fit
/// an SM; 0 where they do not anyway.
int64_t shared_that_leaves(const GpuProperties& gpu, const KernelResources& kernel, int threads,
                           int64_t blocks);

}  // namespace recmill
