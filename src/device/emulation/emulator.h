// SPDX-License-Identifier: Apache-2.0
// Runs a CUDA kernel on the CPU: one block after the other, its threads as fibers that take turns
// at barriers, operations of warps and (in random order) atomics. What a GPU leaves undefined is an
// error: a barrier that only some threads reach, a shuffle that only some lanes of its mask do, a
// lane that reads one outside of it. Shared memory begins with all bits set, which are NaNs.
//
// What no order shows, sanitizers do, to whom each thread of a kernel is a thread:
// AddressSanitizer accesses beyond any variable, in shared memory too; ThreadSanitizer what is not
// ordered by a barrier, an atomic or the end of the kernel.
//
// Not to be had: order by __threadfence(), blocks that wait for each other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "device/emulation/thread_state.h"
#include "device/grid.h"

namespace recmill::emulation {

/// In which order threads of a block, and blocks, get their turns.
enum class Order { forward, reverse, random };

struct Turns {
  Order order = Order::forward;
  uint64_t seed = 1;                // of Order::random
  int64_t most = int64_t{1} << 32;  // of all threads together; beyond: an error
};

/// What a kernel needed.
struct Usage {
  size_t shared_bytes = 0;  // of the block with most: static and dynamic
  int64_t turns = 0;
};

/// What a kernel is to the emulator.
using KernelBody = void (*)(const void* arguments);

/// Returns when all blocks are done, or says in one line with kernel, block, thread and place what
/// went wrong; then what the kernel wrote so far stays, and destructors of its variables do not
/// run. Several threads of the operating system may each run a kernel.
Result<Usage> run_kernel(const char* name, const Grid& grid, KernelBody body, const void* arguments,
                         const Turns& turns = {});

}  // namespace recmill::emulation
