// SPDX-License-Identifier: Apache-2.0
// GPUs through CUDA's driver, which is loaded when it is asked for: nothing links it.
#pragma once

#include <memory>
#include <string>

#include "device/gpu/gpu_driver.h"

namespace recmill {

struct CudaGpu {
  int number = 0;  // of the machine's GPUs
  std::string library = "libcuda.so.1";
  bool wraps = false;         // behind the last GPU comes the first again
  double free_seconds = 1.0;  // that whoever frees memory waits for what runs
};

/// Fails in one line: no driver, one that is too old, no such GPU.
Result<std::unique_ptr<GpuDriver>> make_cuda_driver(const CudaGpu& of);

/// Whether this process gave up a kernel, which may run for ever: what libraries do at a process's
/// end may wait for it.
bool cuda_kernel_was_given_up();

/// GPUs of the machine. Fails as make_cuda_driver().
Result<int> count_cuda_gpus(const std::string& library = CudaGpu().library);

}  // namespace recmill
