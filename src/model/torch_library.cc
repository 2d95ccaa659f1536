// SPDX-License-Identifier: Apache-2.0
#include "model/torch_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "device/gpu/emulated_driver.h"
#include "model/torch_build.h"

namespace recmill::model {
namespace {

constexpr const char* kFile = "librecmill_torch.so";

void run_ranges(ThreadPool& pool, int64_t items, int64_t grain,
                const std::function<void(int64_t, int64_t)>& body) {
  pool.run_ranges(items, grain, body);
}

constexpr TorchHost kHost{run_ranges, enqueue_on_emulated};

std::string path_of(const void* function, const std::string& otherwise) {
  Dl_info of = {};
  return dladdr(function, &of) != 0 && of.dli_fname != nullptr ? of.dli_fname : otherwise;
}

}  // namespace

// Symbols stay the library's own. LibTorch has a oneDNN inside, which must not meet another one
// (kernels/dense_layer/open_onednn.cc).
Result<const TorchLibrary*> open_torch_library(const std::string& file) {
  void* const opened = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr)
    return Status::Failed(fmt::format(
        "LibTorch: {}; {} belongs beside a program that was built, or into lib/recmill of an "
        "installation: `make build` and `make install` put it there, `make setup` brings LibTorch",
        dlerror(), kFile));
  void* const symbol = dlsym(opened, "recmill_torch_library");
  const auto entry = reinterpret_cast<decltype(&recmill_torch_library)>(symbol);
  const TorchLibrary* const library = entry == nullptr ? nullptr : entry(torch_build(), &kHost);
  if (library == nullptr)
    return Status::Failed(fmt::format(
        "LibTorch: {} is of another build of Recmill than this program; build or install both anew",
        path_of(symbol, file)));
  const std::string loaded = library->version();
  if (!loaded.starts_with(std::string(torch_version()) + ","))
    return Status::Failed(
        fmt::format("LibTorch: {} was compiled against version {} and finds {}; build Recmill anew",
                    path_of(symbol, file), torch_version(), loaded));
  return library;
}

Result<const TorchLibrary*> torch_library() {
  static const Result<const TorchLibrary*> library = open_torch_library(kFile);
  return library;
}

Status open_layers_on_cuda() {
  RECMILL_ASSIGN_OR_RETURN(const TorchLibrary* torch, torch_library());
  return torch->open_layers_on_cuda();
}

Result<std::unique_ptr<GpuLayers>> make_gpu_layers(LayersOn device, const Gpu& gpu,
                                                   const Model& model, const ModelSpec& spec) {
  RECMILL_ASSIGN_OR_RETURN(const TorchLibrary* torch, torch_library());
  return torch->make_gpu_layers(device, gpu, model, spec);
}

}  // namespace recmill::model
