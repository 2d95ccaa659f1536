// SPDX-License-Identifier: Apache-2.0
#include "train/gpu_run.h"

#include <utility>

#include "device/gpu/cuda_driver.h"
#include "device/gpu/emulated_driver.h"
#include "store/gpu_store.h"
#include "train/generated_code.h"

namespace recmill::train {
namespace {

using kernels::codegen::CubinCache;
using kernels::codegen::GpuCode;
using kernels::codegen::GpuSource;

Result<std::unique_ptr<Gpu>> open_gpu(DeviceKind device) {
  RECMILL_ASSIGN_OR_RETURN(
      auto driver, device == DeviceKind::cuda ? make_cuda_driver({}) : make_emulated_driver({}));
  return std::make_unique<Gpu>(std::move(driver), GpuOptions{});
}

}  // namespace

Result<std::unique_ptr<store::EmbeddingStore>> make_gpu_store(const ResolvedRun& run, Pool& pool,
                                                              Files& files) {
  const DeviceKind device = run.options.device;
  const std::string key = "device = \"" + std::string(name_of(device)) + "\"";
  auto gpu = open_gpu(device);
  if (!gpu.ok()) return gpu.status().at(key);
  const std::string architecture = "sm_" + std::to_string((*gpu)->properties().compute);
  RECMILL_ASSIGN_OR_RETURN(auto libraries, library_cache(run.options.kernels, files));
  const auto compile = [&](std::span<const GpuSource> sources) -> Result<std::vector<GpuCode>> {
    if (device == DeviceKind::emulated) return emulated_code(sources, libraries);
    RECMILL_ASSIGN_OR_RETURN(auto binaries, CubinCache::open(libraries.folder(), files));
    return binaries.load(sources, architecture, pool);
  };
  auto store = store::GpuStore::create(run.spec, static_cast<uint64_t>(run.options.train.seed),
                                       *std::move(gpu), compile, pool);
  if (!store.ok()) return store.status().at(key);
  return std::unique_ptr<store::EmbeddingStore>(*std::move(store));
}

}  // namespace recmill::train
