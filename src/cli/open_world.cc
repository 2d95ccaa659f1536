// SPDX-License-Identifier: Apache-2.0
#include "cli/open_world.h"

#include <cstdlib>
#include <string>

#include "comm/threads.h"
#ifdef RECMILL_MPI
#include "comm/mpi/mpi_world.h"
#endif

namespace recmill::cli {
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

}  // namespace

Result<std::unique_ptr<World>> open_world(const train::TrainOptions& train) {
  const int processes = launched_processes();
  if (!(train.wait_seconds > 0.0)) return Status::BadRequest("train.wait_seconds: must be above 0");
  if (train.transport == Transport::mpi ||
      (train.transport == Transport::automatic && processes > 1))
    return open_mpi(train.wait_seconds);
  if (processes > 1)
    return Status::BadRequest("train.transport: is \"threads\", but " + std::to_string(processes) +
                              " processes were started");
  return std::unique_ptr<World>(std::make_unique<ThreadsWorld>());
}

std::string mpi_library() {
#ifdef RECMILL_MPI
  return MpiWorld::library();
#else
  return "none";
#endif
}

std::unique_ptr<World> open_world_of_launcher() {
  if (launched_processes() < 2) return nullptr;
  auto world = open_mpi(train::TrainOptions().wait_seconds);
  return world.ok() ? *std::move(world) : nullptr;
}

}  // namespace recmill::cli
