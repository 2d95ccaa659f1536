// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "device/emulation/emulator.h"

namespace recmill::testing {

/// What the stand-in of CUDA's driver is to be: its variable `fake_cuda`.
struct FakeCuda {
  int version = 13000;
  size_t most_bytes = size_t{1} << 30;   // of memory
  size_t most_pinned = size_t{1} << 30;  // of the host's
  int error = 0;                         // of all that comes
  bool stuck = false;                    // no stream is ever done
  int queries = 0;                       // of streams
  int gpus = 1;
  int hung = 0;                                    // calls that would not have returned then
  bool launches_fail = false;                      // with that error
  bool no_graphs = false;                          // none can be made
  bool unified = true;                             // kernels reach the host's memory at its address
  int opened = 0;                                  // memory of other processes
  int freed = 0;                                   // allocations
  void (*before_free)() = nullptr;                 // called, where it is not null
  int priority = 1;                                // of the last stream; less goes first
  decltype(&emulation::run_kernel) run = nullptr;  // that of whoever loads it
};

/// A "binary" for it: the kernel itself, in this process.
struct FakeImage {
  char magic[8] = {'f', 'a', 'k', 'e', 'c', 'u', 'd', 'a'};
  void (*kernel)(const void*) = nullptr;
  size_t argument_bytes = 0;  // where it is captured
  int most_threads = 1024;
  int shared = 0;
};

}  // namespace recmill::testing
