// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/files.h"
#include "base/status.h"
#include "comm/communicator.h"
#include "device/thread_pool.h"
#include "run/resolved_run.h"
#include "table/home/row_home.h"

namespace recmill::train {

/// Where the rows of a cache are stored, as this rank sees it: in its own process those that
/// HomeRanks says, or all of them at servers. Collective.
Result<std::shared_ptr<table::RowHome>> make_row_home(const ResolvedRun& run,
                                                      Communicator& communicator, ThreadPool& pool,
                                                      Files& files);

}  // namespace recmill::train
