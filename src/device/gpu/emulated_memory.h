// SPDX-License-Identifier: Apache-2.0
// Memory of a GPU that the emulator plays: of the heap, where sanitizers see who goes beyond it; of
// whole blocks, such as windows between GPUs have, what other processes can open too.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "device/gpu/gpu_driver.h"

namespace recmill {

class EmulatedMemory {
 public:
  /// Its content is all ones: NaN. Fails where the machine has no more.
  static Result<EmulatedMemory> allocate(size_t bytes);
  ~EmulatedMemory();
  EmulatedMemory(EmulatedMemory&& other) noexcept;
  EmulatedMemory& operator=(EmulatedMemory&&) = delete;

  void* address() const { return address_; }
  size_t bytes() const { return bytes_; }

  /// Fails where it is of the heap.
  Result<GpuMemoryHandle> share() const;
  /// What another process shares, here; it is closed by close().
  static Result<void*> open(const GpuMemoryHandle& handle);
  static void close(void* memory, const GpuMemoryHandle& handle);

 private:
  EmulatedMemory(void* address, size_t bytes, int file)
      : address_(address), bytes_(bytes), file_(file) {}

  void* address_ = nullptr;
  size_t bytes_ = 0;
  int file_ = -1;  // that it is mapped from; -1: it is of the heap
};

}  // namespace recmill
