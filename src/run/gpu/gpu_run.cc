// SPDX-License-Identifier: Apache-2.0
#include "run/gpu/gpu_run.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "comm/gather_values.h"
#include "device/gpu/cuda_driver.h"
#include "device/gpu/emulated_driver.h"
#include "run/generated_code.h"

namespace recmill::train {
namespace {

using kernels::codegen::CompileForGpu;
using kernels::codegen::CubinCache;
using kernels::codegen::GpuSource;
using kernels::codegen::LibraryCache;

/// SMs of the GPU that the CPU plays: few, so that tuning fills it soon.
constexpr int kEmulatedSms = 2;

}  // namespace

Result<std::unique_ptr<Gpu>> open_gpu(const RunOptions& options, int number,
                                      emulation::Usage* usage) {
  const DeviceKind device = options.device;
  EmulatedGpu played;
  played.usage = usage;
  played.sms = kEmulatedSms;
  auto driver = device == DeviceKind::cuda ? make_cuda_driver({.number = number, .wraps = true})
                                           : make_emulated_driver(played);
  if (!driver.ok()) return driver.status().at("device = \"" + std::string(name_of(device)) + "\"");
  return std::make_unique<Gpu>(*std::move(driver),
                               GpuOptions{.synchronous = options.gpu.synchronous,
                                          .kernel_seconds = options.gpu.kernel_seconds,
                                          .check_nan = options.gpu.check_nan});
}

bool layers_are_on_gpu(const RunOptions& options) {
  return options.device != DeviceKind::cpu && !options.train.deterministic &&
         options.embedding.store != StoreKind::plain;
}

bool may_have_far_rows(const RunOptions& options) {
  return options.device != DeviceKind::cpu && options.gpu.rows != GpuRowsIn::device &&
         options.embedding.store == StoreKind::local;
}

preprocess::RowReaders row_readers(const RunOptions& options, int ranks) {
  const bool gpu = ranks == 1 && options.embedding.store == StoreKind::local;
  return {gpu, !gpu || model::reads_rows(options.model)};
}

Result<RankOnHost> rank_on_host(Communicator& communicator) {
  std::array<char, 256> host = {};
  gethostname(host.data(), host.size() - 1);
  RECMILL_ASSIGN_OR_RETURN(const auto hosts, gather_values(host, communicator));
  RankOnHost place{0, {}};
  for (int rank = 0; rank < communicator.ranks(); ++rank) {
    if (rank == communicator.rank()) place.number = static_cast<int>(place.ranks.size());
    if (hosts[rank] == hosts[communicator.rank()]) place.ranks.push_back(rank);
  }
  return place;
}

Result<int> gpus_of_machine(DeviceKind device) {
  if (device == DeviceKind::emulated) return 0;
  auto gpus = count_cuda_gpus();
  if (!gpus.ok()) return gpus.status().at("device = \"" + std::string(name_of(device)) + "\"");
  return gpus;
}

Status check_gpu(const RunOptions& options) {
  return options.device == DeviceKind::cpu ? Status() : gpus_of_machine(options.device).status();
}

std::vector<int> ranks_of_same_gpu(const RankOnHost& place, int gpus) {
  if (gpus == 0) return {place.ranks[place.number]};
  std::vector<int> same;
  for (int n = place.number % gpus; n < std::ssize(place.ranks); n += gpus)
    same.push_back(place.ranks[n]);
  return same;
}

Result<CompileForGpu> compiler_for(const ResolvedRun& run, DeviceKind device, const Gpu& gpu,
                                   ThreadPool& pool, Files& files) {
  RECMILL_ASSIGN_OR_RETURN(auto made, library_cache(run.options.kernels, files));
  const auto libraries = std::make_shared<LibraryCache>(std::move(made));
  if (device == DeviceKind::emulated)
    return CompileForGpu([libraries](std::span<const GpuSource> sources) {
      return emulated_code(sources, *libraries);
    });
  RECMILL_ASSIGN_OR_RETURN(auto opened, CubinCache::open(libraries->folder(), files));
  const auto binaries = std::make_shared<CubinCache>(std::move(opened));
  const std::string architecture = "sm_" + std::to_string(gpu.properties().compute);
  return CompileForGpu([binaries, architecture, &pool](std::span<const GpuSource> sources) {
    return binaries->load(sources, architecture, pool);
  });
}

Result<RankGpu> open_rank_gpu(const ResolvedRun& run, Communicator& communicator, ThreadPool& pool,
                              Files& files) {
  RankGpu of;
  RECMILL_ASSIGN_OR_RETURN(of.place, rank_on_host(communicator));
  RECMILL_ASSIGN_OR_RETURN(of.gpu, open_gpu(run.options, of.place.number));
  RECMILL_ASSIGN_OR_RETURN(of.compile, compiler_for(run, run.options.device, *of.gpu, pool, files));
  return of;
}

}  // namespace recmill::train
