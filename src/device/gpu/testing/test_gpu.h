// SPDX-License-Identifier: Apache-2.0
// The GPU that tests of kernels and of what launches them run on: the emulator's, or with
// RECMILL_TEST_DEVICE=cuda the machine's own. The bodies of the tests are the same.
//
// What leaves a real GPU unusable for the rest of a process (a kernel that traps) is tested in
// suites named *FailingKernel, whose tests are then started one by one.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "device/gpu/emulated_driver.h"
#include "device/gpu/gpu.h"

namespace recmill::testing {

/// Whether it is the machine's own.
bool on_cuda();

/// `emulated`: what the emulator plays; a real GPU is what it is.
std::unique_ptr<GpuDriver> test_driver(const EmulatedGpu& emulated = {});

/// Arrays in the GPU's memory, each by itself: sanitizers see who goes beyond one.
class TestArrays {
 public:
  TestArrays(Gpu& gpu, GpuStream& stream) : gpu_(gpu), stream_(stream) {}

  /// A copy of the values.
  template <class T>
  T* put(std::span<const T> values) {
    return static_cast<T*>(put_bytes(std::as_bytes(values)));
  }
  template <class T>
  T* put(const std::vector<T>& values) {
    return put(std::span<const T>(values));
  }
  /// What is in one that was put.
  template <class T>
  std::vector<T> get(const T* array) {
    const GpuBuffer& from = buffer_of(array);
    std::vector<T> values(from.size() / sizeof(T));
    get_bytes(from, std::as_writable_bytes(std::span(values)));
    return values;
  }

 private:
  void* put_bytes(std::span<const std::byte> bytes);
  void get_bytes(const GpuBuffer& from, std::span<std::byte> to);
  const GpuBuffer& buffer_of(const void* array) const;

  Gpu& gpu_;
  GpuStream& stream_;
  PinnedBuffer staging_;
  std::vector<GpuBuffer> buffers_;
};

}  // namespace recmill::testing
