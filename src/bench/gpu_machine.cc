// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu_machine.h"

#include "base/files.h"
#include "device/gpu/cuda_driver.h"
#include "device/gpu/emulated_driver.h"

namespace recmill::bench {

using kernels::codegen::CubinCache;
using kernels::codegen::GpuCode;
using kernels::codegen::GpuSource;

Result<GpuMachine> open_gpu_machine(DeviceKind device, const std::string& folder,
                                    ThreadPool& pool) {
  GpuMachine machine;
  machine.emulated = device == DeviceKind::emulated;
  auto driver = machine.emulated ? make_emulated_driver({}) : make_cuda_driver({});
  if (!driver.ok()) return driver.status().at("--device " + std::string(name_of(device)));
  machine.gpu = std::make_unique<Gpu>(*std::move(driver), GpuOptions{});
  const std::string architecture = "sm_" + std::to_string(machine.gpu->properties().compute);
  machine.compile = [=, emulated = machine.emulated,
                     &pool](std::span<const GpuSource> sources) -> Result<std::vector<GpuCode>> {
    if (emulated) {
      kernels::codegen::LibraryCacheOptions options;
      options.folder = folder;
      kernels::codegen::LibraryCache cache(options, posix_files());
      return emulated_code(sources, cache);
    }
    RECMILL_ASSIGN_OR_RETURN(auto cache, CubinCache::open(folder, posix_files()));
    return cache.load(sources, architecture, pool);
  };
  return machine;
}

}  // namespace recmill::bench
