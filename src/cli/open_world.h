// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/status.h"
#include "comm/world.h"
#include "train/train_options.h"

namespace recmill::cli {

/// The ranks that the section [train] asks for. One a process. A bad request where several
/// processes were started for ranks that are threads, or MPI is wanted of a build without it.
Result<std::unique_ptr<World>> open_world(const train::TrainOptions& train);

}  // namespace recmill::cli
