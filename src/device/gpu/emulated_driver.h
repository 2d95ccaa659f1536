// SPDX-License-Identifier: Apache-2.0
// A GPU that the emulator plays. Memory of its own, whose first content is NaN; streams that do
// nothing until somebody asks whether they are done: who forgets to wait, or changes what a copy
// still reads, gets another answer every time, not once in a while.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "device/emulation/emulator.h"
#include "device/gpu/gpu_driver.h"

namespace recmill {

struct EmulatedGpu {
  int64_t memory = int64_t{8} << 30;   // bytes
  int64_t pinned_memory = INT64_MAX;   // bytes that the host has of it
  std::string architecture = "sm_90";  // whose limits it has
  int sms = 0;                         // 0: as many as it has
  emulation::Turns turns = {};
  bool late = true;  // false: what is enqueued happens at once
  /// What all kernels needed is added up here, lanes counted; the time that events tell is then a
  /// model's, the same each time: a nanosecond for each warp step, four at a time on each
  /// SM, and nothing else.
  emulation::Usage* usage = nullptr;
};

/// Fails as gpu_of_architecture().
Result<std::unique_ptr<GpuDriver>> make_emulated_driver(const EmulatedGpu& of);

/// Enqueues, on a stream of an emulated GPU, something that takes its time: once all before it has
/// happened, `work` is asked again and again until it says that it has, too. It must not wait.
Status enqueue_on_emulated(GpuDriver::Stream stream, std::function<Result<bool>()> work);

}  // namespace recmill
