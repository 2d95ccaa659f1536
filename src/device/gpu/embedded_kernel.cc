// SPDX-License-Identifier: Apache-2.0
#include "device/gpu/embedded_kernel.h"

#include <dlfcn.h>

#include <map>
#include <mutex>
#include <utility>

#include "device/gpu/cuda_api.h"

namespace recmill {
namespace {

/// The driver's functions, of which only these are looked up; what is missing, where one is.
struct Driver {
  cuda::Api api = {};
  std::string problem;

  explicit Driver(const char* name) {
    void* const library = dlopen(name, RTLD_NOW);
    if (library == nullptr) {
      problem = std::string("no driver of GPUs: ") + dlerror();
      return;
    }
    const auto find = [&](auto& function, const char* symbol) {
      void* const found = dlsym(library, symbol);
      if (found == nullptr && problem.empty())
        problem = std::string("the driver ") + name + " has no " + symbol;
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
    };
    find(api.error_string, "cuGetErrorString");
    find(api.load_module, "cuModuleLoadData");
    find(api.function, "cuModuleGetFunction");
    find(api.set_function, "cuFuncSetAttribute");
    find(api.launch, "cuLaunchKernel");
  }

  std::string said(const std::string& what, cuda::Result error) const {
    const char* text = nullptr;
    if (api.error_string(error, &text) != 0 || text == nullptr) text = "unknown error";
    return what + ": " + text + " (CUDA error " + std::to_string(error) + ")";
  }
};

struct Loaded {
  cuda::Handle function = nullptr;
  unsigned dynamic_shared = 0;
};

/// The kernel on this GPU, of the one binary that the GPU takes; it stays loaded.
std::string load(const EmbeddedKernel& kernel, const Driver& driver, int gpu, Loaded& loaded) {
  const std::string name = std::string("kernel ") + kernel.entry;
  std::string architectures;
  for (const EmbeddedCubin& cubin : kernel.cubins) {
    cuda::Handle module = nullptr;
    auto error = driver.api.load_module(&module, cubin.bytes);
    architectures += (architectures.empty() ? "" : ", ") + std::string(cubin.architecture);
    if (error == cuda::kNoImage) continue;
    cuda::Handle function = nullptr;
    if (error == 0) error = driver.api.function(&function, module, kernel.entry);
    if (error == 0)
      error = driver.api.set_function(function, cuda::kMostDynamicShared,
                                      static_cast<int>(cubin.dynamic_shared));
    if (error != 0) return driver.said(name, error);
    loaded = {function, cubin.dynamic_shared};
    return "";
  }
  return name + " was compiled for " + architectures + ", which GPU " + std::to_string(gpu) +
         " is not";
}

}  // namespace

std::string launch(const EmbeddedKernel& kernel, unsigned blocks, unsigned threads,
                   const void* arguments, const char* driver_name, int gpu, void* stream) {
  static const Driver driver(driver_name);
  if (!driver.problem.empty()) return driver.problem;
  static std::mutex mutex;
  static std::map<std::pair<const EmbeddedKernel*, int>, Loaded> all;
  Loaded loaded;
  {
    const std::lock_guard lock(mutex);
    Loaded& known = all[{&kernel, gpu}];
    if (known.function == nullptr)
      if (const auto problem = load(kernel, driver, gpu, known); !problem.empty()) return problem;
    loaded = known;
  }
  void* parameters[] = {const_cast<void*>(arguments)};
  const auto error = driver.api.launch(loaded.function, blocks, 1, 1, threads, 1, 1,
                                       loaded.dynamic_shared, stream, parameters, nullptr);
  return error == 0 ? "" : driver.said(std::string("kernel ") + kernel.entry, error);
}

}  // namespace recmill
