// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "device/gpu/gpu.h"
#include "device/thread_pool.h"
#include "kernels/codegen/gpu/gpu_code.h"
#include "schema/device_kind.h"

namespace recmill::bench {

/// A GPU to be timed, and what compiles for it.
struct GpuMachine {
  std::unique_ptr<Gpu> gpu;
  kernels::codegen::CompileForGpu compile;
  bool emulated = false;
  double copy_rate = 0.0;  // bytes a second, read and written: measured
};

/// Compiled code goes to `folder`. Fails as the driver.
Result<GpuMachine> open_gpu_machine(DeviceKind device, const std::string& folder, ThreadPool& pool);

}  // namespace recmill::bench
