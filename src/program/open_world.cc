// SPDX-License-Identifier: Apache-2.0
#include "program/open_world.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "base/log.h"
#include "comm/nccl/emulated_nccl.h"
#include "comm/nccl/nccl_library.h"
#include "comm/nccl/nccl_world.h"
#include "comm/threads.h"
#include "device/gpu/cuda_driver.h"
#include "device/gpu/emulated_driver.h"
#ifdef RECMILL_MPI
#include "comm/mpi/mpi_world.h"
#endif

namespace recmill::program {
namespace {

using train::Transport;

/// Processes that an MPI launcher says it started; 0: there is none.
int launched_processes() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    if (const char* value = std::getenv(name)) return std::atoi(value);
  }
  return 0;
}

Result<std::unique_ptr<World>> open_mpi(double wait_seconds) {
#ifdef RECMILL_MPI
  RECMILL_ASSIGN_OR_RETURN(auto world, MpiWorld::start(wait_seconds));
  return std::unique_ptr<World>(std::move(world));
#else
  static_cast<void>(wait_seconds);
  return Status::BadRequest("train.transport: this build has no MPI");
#endif
}

/// Where the ranks of a transport are, whatever they have besides.
Result<std::unique_ptr<World>> open_hosts(const train::TrainOptions& train) {
  const Transport transport = train.transport;
  const int processes = launched_processes();
  const bool goes_by_launcher = transport == Transport::automatic || transport == Transport::nccl;
  if (transport == Transport::mpi || (goes_by_launcher && processes > 1))
    return open_mpi(train.wait_seconds);
  if (processes > 1)
    return Status::BadRequest("train.transport: is \"" + std::string(name_of(transport)) +
                              "\", but " + std::to_string(processes) + " processes were started");
  return std::unique_ptr<World>(std::make_unique<ThreadsWorld>());
}

Result<std::unique_ptr<Gpu>> opened(Result<std::unique_ptr<GpuDriver>> driver) {
  if (!driver.ok()) return driver.status().at("train.transport");
  return std::make_unique<Gpu>(*std::move(driver), GpuOptions{});
}

Result<NcclSetting> nccl_setting(const train::TrainOptions& train) {
  NcclSetting setting{.options = {.limit_seconds = train.wait_seconds}};
  if (train.transport == Transport::nccl_emulated) {
    log_info(
        "train.transport = \"nccl_emulated\": a stand-in for NCCL, over threads, between GPUs that "
        "the CPU plays");
    setting.api = emulated_nccl();
    setting.open_gpu = [](int) { return opened(make_emulated_driver({})); };
    return setting;
  }
  const auto api = load_nccl();
  if (!api.ok()) return api.status().at("train.transport");
  setting.api = *api;
  setting.open_gpu = [](int number) { return opened(make_cuda_driver({.number = number})); };
  return setting;
}

}  // namespace

Result<std::unique_ptr<World>> open_world(const train::TrainOptions& train) {
  RECMILL_ASSIGN_OR_RETURN(auto hosts, open_hosts(train));
  if (train.transport != Transport::nccl && train.transport != Transport::nccl_emulated)
    return hosts;
  RECMILL_ASSIGN_OR_RETURN(auto setting, nccl_setting(train));
  return std::unique_ptr<World>(std::make_unique<NcclWorld>(std::move(hosts), std::move(setting)));
}

std::string mpi_library() {
#ifdef RECMILL_MPI
  return MpiWorld::library();
#else
  return "none";
#endif
}

Result<AllReduce> library_all_reduce(const World& world, int ranks) {
#ifdef RECMILL_MPI
  if (const auto* const mpi = dynamic_cast<const MpiWorld*>(&world)) return mpi->all_reduce(ranks);
#else
  static_cast<void>(world), static_cast<void>(ranks);
#endif
  return Status::BadRequest("threads have no library that adds over them");
}

std::unique_ptr<World> open_world_of_launcher() {
  if (launched_processes() < 2) return nullptr;
  auto world = open_mpi(train::TrainOptions().wait_seconds);
  return world.ok() ? *std::move(world) : nullptr;
}

}  // namespace recmill::program
