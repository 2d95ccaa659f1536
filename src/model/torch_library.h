// SPDX-License-Identifier: Apache-2.0
// librecmill_torch.so, which has all that sees LibTorch (the folder torch/). A program opens it
// when it makes the first thing of it: loading LibTorch takes a third of a second of processor
// time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "device/gpu/gpu_driver.h"
#include "device/thread_pool.h"
#include "model/float64_model.h"
#include "model/gpu_layers.h"
#include "model/model.h"
#include "model/model_options.h"

namespace recmill::model {

/// What the library makes, for options and specs that make_model() has checked.
struct TorchLibrary {
  /// Of the LibTorch that is loaded, and the instruction set that its kernels use here: "2.11.0,
  /// AVX512".
  std::string (*version)();
  /// A model of any kind, with tensors.
  std::unique_ptr<Model> (*make_model)(const ModelOptions& options, const ModelSpec& spec,
                                       uint64_t seed);
  std::unique_ptr<Float64Model> (*make_float64_model)(const ModelOptions& options,
                                                      const ModelSpec& spec, uint64_t seed);
  Status (*open_layers_on_cuda)();
  Result<std::unique_ptr<GpuLayers>> (*make_gpu_layers)(LayersOn device, const Gpu& gpu,
                                                        const Model& model, const ModelSpec& spec);
};

/// What the library calls of the program: what has a state of the process, of which there is one.
/// The rest of Recmill that it uses it has copies of.
struct TorchHost {
  void (*run_ranges)(ThreadPool& pool, int64_t items, int64_t grain,
                     const std::function<void(int64_t, int64_t)>& body);
  Status (*enqueue_on_emulated)(GpuDriver::Stream stream, std::function<Result<bool>()> work);
};

/// The library, opened by the first call in a process. Fails where it is missing, is of another
/// build than the program, or finds another LibTorch than it was compiled against.
Result<const TorchLibrary*> torch_library();

/// The same of a file, or of a name that the dynamic linker finds.
Result<const TorchLibrary*> open_torch_library(const std::string& file);

}  // namespace recmill::model

/// The library's one function. Null where `build` is not its own torch_build().
extern "C" const recmill::model::TorchLibrary* recmill_torch_library(
    const char* build, const recmill::model::TorchHost* host);
