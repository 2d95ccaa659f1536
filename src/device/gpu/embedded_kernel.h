// SPDX-License-Identifier: Apache-2.0
// A kernel whose binaries are part of the program, launched on a GPU that some other library has
// made current, on its stream. Stands by itself, for compiled operators (pool_op);
// programs of Recmill use device/gpu/gpu.h.
#pragma once

#include <span>
#include <string>

namespace recmill {

struct EmbeddedCubin {
  const char* architecture;  // "sm_90"
  const char* bytes;
  unsigned dynamic_shared;  // bytes of a block that launches ask for
};

struct EmbeddedKernel {
  const char* entry;
  std::span<const EmbeddedCubin> cubins;
};

/// Enqueues the kernel through the driver that the library of that name is. `arguments`: of its one
/// struct. Returns what went wrong, in a line: no driver, no binary for this GPU, what the driver
/// says; empty: nothing. Any thread.
std::string launch(const EmbeddedKernel& kernel, unsigned blocks, unsigned threads,
                   const void* arguments, const char* driver, int gpu, void* stream);

}  // namespace recmill
