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
// A kernel that is compiled with -fsanitize-coverage=trace-pc tells of each basic block of code
// that a thread comes to: so it is ended where it runs for ever, and how many lanes of a warp were
// active is counted.
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
  uint64_t seed = 1;  // of Order::random
  // Of all threads together; beyond: an error.
  int64_t most = int64_t{1} << 32;
  int64_t most_steps = int64_t{1} << 35;  // basic blocks
  bool count_lanes = false;               // for Usage::warp_steps
};

/// What a kernel needed.
struct Usage {
  size_t shared_bytes = 0;  // of the block with most: static and dynamic
  int64_t turns = 0;
  int64_t steps = 0;  // basic blocks that threads came to
  // The same where the lanes of a warp that come to a basic block between two of their meetings go
  // through it together, the first time each, the second time each ...: what a GPU issues.
  int64_t warp_steps = 0;
  Usage& operator+=(const Usage& other);
  double active_lanes() const {
    return warp_steps > 0 ? static_cast<double>(steps) / static_cast<double>(warp_steps) : 0.0;
  }
};

/// What a kernel is to the emulator.
using KernelBody = void (*)(const void* arguments);

/// Returns when all blocks are done, or says in one line with kernel, block, thread and place what
/// went wrong; then what the kernel wrote so far stays, and destructors of its variables do not
/// run. Several threads of the operating system may each run a kernel.
Result<Usage> run_kernel(const char* name, const Grid& grid, KernelBody body, const void* arguments,
                         const Turns& turns = {});

}  // namespace recmill::emulation
