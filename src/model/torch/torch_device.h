// SPDX-License-Identifier: Apache-2.0
// Where LibTorch computes beside a GPU's other work.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "base/status.h"
#include "device/gpu/gpu.h"

namespace recmill::model {

struct TorchDevice {
  at::Device device = at::kCPU;
  /// Enqueues what `work` asks of LibTorch on the stream; what `work` refers to is there until the
  /// stream comes to it. An error may come later, as that of the stream.
  std::function<Status(GpuStream& stream, std::function<Status()> work)> enqueue;
  /// How often LibTorch gave memory back to the device, which it does when there is none left: what
  /// was captured names memory that stays LibTorch's until then, and is used in the stream's order.
  std::function<int64_t()> freed;
};

/// Opens LibTorch's half for GPUs, once in a process, and takes no memory of any. Fails, naming the
/// library that is missing.
Status load_torch_cuda();

/// The machine's GPU of that number. Fails as load_torch_cuda().
Result<TorchDevice> torch_on_cuda(int number);

/// The GPU that the emulator plays: LibTorch computes on the CPU, in the emulated memory, when the
/// stream comes to it.
TorchDevice torch_on_emulated_gpu();

}  // namespace recmill::model
