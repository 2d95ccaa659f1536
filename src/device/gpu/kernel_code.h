// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace recmill {

/// One kernel as each kind of device runs it.
struct KernelCode {
  std::string name;                         // of its entry
  std::span<const std::byte> cubin = {};    // of a GPU, for its architecture
  void (*emulated)(const void*) = nullptr;  // of the emulator: called with the kernel's struct
  int most_dynamic_shared = 0;              // bytes of a block that launches may ask for
};

}  // namespace recmill
