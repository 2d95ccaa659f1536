// SPDX-License-Identifier: Apache-2.0
// What a kernel on the emulator and the emulator's runtime know of each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>

#include "device/grid.h"

namespace recmill::emulation {

constexpr unsigned kWarp = 32;

struct Index {
  unsigned x = 0, y = 0, z = 0;
};
/// Where a thread is in its grid.
struct ThreadState {
  Index thread, block;
  GridExtent threads, blocks;  // of the block, of the grid
};
/// Of the thread that runs; null: no kernel does.
extern __thread const ThreadState* running;

/// The place in a kernel's source that an operation is at: what makes two of them the same.
struct Site {
  const char* file = "";
  unsigned line = 0, column = 0;
  Site() = default;
  Site(const std::source_location& at)  // NOLINT: implicit by design
      : file(at.file_name()), line(at.line()), column(at.column()) {}
};

enum class WarpOp {
  sync,
  shuffle,       // operand: the lane of the group that is read
  shuffle_up,    // operand: how many lanes below
  shuffle_down,  // operand: how many above
  shuffle_xor,   // operand: what the lane's number is xor-ed with
  ballot,
  match_any,
  add,
  least,
  largest,
};
struct WarpCall {
  WarpOp op = WarpOp::sync;
  uint32_t mask = 0;
  uint64_t value = 0;
  int operand = 0;
  int width = kWarp;  // lanes of a group of a shuffle
  Site site;
};
/// Returns when every lane of the mask has called it: what this lane gets.
uint64_t call_warp(const WarpCall& call);

struct BarrierVotes {
  int count = 0, threads = 0;  // whose predicate is not zero, of all that came
};
/// Returns when every thread of the block that has not ended has called it.
BarrierVotes call_barrier(bool predicate, Site site);

/// The block's variable of this key, made by the first thread that asks; all bits are set.
void* shared_variable(const void* key, size_t bytes, size_t alignment);
/// The block's shared memory of the size that was asked for when the kernel was launched.
void* dynamic_shared(size_t alignment, Site site);
/// Where threads may be made to take turns in random order.
void at_atomic();
/// Warp steps of the running block so far (emulator.h), up to the last barrier: its clock.
int64_t warp_steps_of_block();
/// Ends the kernel with an error.
[[noreturn]] void fail_kernel(const char* why, Site site);

}  // namespace recmill::emulation
