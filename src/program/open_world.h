// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "comm/world.h"
#include "step/train_options.h"

namespace recmill::program {

/// The ranks that the section [train] asks for. One a process. A bad request where several
/// processes were started for ranks that are threads, or MPI is wanted of a build without it. Fails
/// where NCCL is wanted and not to be had.
Result<std::unique_ptr<World>> open_world(const train::TrainOptions& train);

/// Name and version of the MPI library; "none" in a build without it.
std::string mpi_library();

/// A sum over the first `ranks` processes as the MPI library makes it by itself, in whatever order:
/// what benchmarks compare with. None on the other processes. Collective over all; a bad request
/// where the ranks of the world are not MPI's.
using AllReduce = std::function<Status(std::span<const float> own, std::span<float> total)>;
Result<AllReduce> library_all_reduce(const World& world, int ranks);

/// The processes that an MPI launcher started, so that one of them tells of a failure before
/// open_world(). Collective over those that fail so and those that open a world. Null where
/// there are not several, or no world of them can be opened.
std::unique_ptr<World> open_world_of_launcher();

}  // namespace recmill::program
