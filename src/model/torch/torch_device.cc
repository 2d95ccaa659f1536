// SPDX-License-Identifier: Apache-2.0
#include "model/torch/torch_device.h"

#include <ATen/ATen.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/StreamGuard.h>
#include <dlfcn.h>

#include <string>

#include "model/torch/guarded.h"
#include "model/torch/host.h"

namespace recmill::model {
namespace {

const std::string kOf = "LibTorch's layers on GPUs: ";

/// The folder of the LibTorch that this process runs on.
std::string torch_folder() {
  Dl_info of = {};
  const bool found = dladdr(reinterpret_cast<void*>(&at::globalContext), &of) != 0;
  const std::string path = found && of.dli_fname != nullptr ? of.dli_fname : "";
  return path.substr(0, path.rfind('/') + 1);
}

/// The thread on which LibTorch differentiates has no context before it has run a kernel, and warns
/// of it where the first is a product of matrices, as those of models are.
Status open_differentiation(at::Device device) {
  const at::Tensor x = at::ones({1}, device).requires_grad_();
  (x * x).backward();
  return {};
}

/// A stream that LibTorch did not open is known to it by its address.
c10::Stream torch_stream(const GpuStream& stream, at::Device device) {
  return c10::Stream(c10::Stream::UNSAFE, device, reinterpret_cast<c10::StreamId>(stream.handle()));
}

}  // namespace

// LibTorch finds its half for GPUs by what that registers when it is loaded, and never looks again:
// nothing may ask it for one before.
Status load_torch_cuda() {
  const std::string path = torch_folder() + "libtorch_cuda.so";
  if (dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr)
    return Status::Failed(kOf + std::string(dlerror()) +
                          "; `make setup-cuda` installs what they need");
  if (!at::globalContext().hasCUDA()) return Status::Failed(kOf + path + " finds no GPU");
  return guarded("layers on GPUs", [] {
    at::globalContext().lazyInitDevice(at::kCUDA);
    return Status();
  });
}

Result<TorchDevice> torch_on_cuda(int number) {
  RECMILL_RETURN_IF_ERROR(load_torch_cuda());
  const at::Device device(at::kCUDA, static_cast<c10::DeviceIndex>(number));
  RECMILL_RETURN_IF_ERROR(
      guarded("layers on GPUs", [device] { return open_differentiation(device); }));
  return TorchDevice{
      device,
      [device](GpuStream& stream, const std::function<Status()>& work) {
        const c10::StreamGuard guard(torch_stream(stream, device));
        return work();
      },
      [device] {
        return c10::getDeviceAllocator(at::kCUDA)->getDeviceStats(device.index()).num_device_free;
      }};
}

TorchDevice torch_on_emulated_gpu() {
  return {at::kCPU,
          [](GpuStream& stream, std::function<Status()> work) {
            return host().enqueue_on_emulated(stream.handle(),
                                              [work = std::move(work)]() -> Result<bool> {
                                                RECMILL_RETURN_IF_ERROR(work());
                                                return true;
                                              });
          },
          [] { return int64_t{0}; }};
}

}  // namespace recmill::model
