// SPDX-License-Identifier: Apache-2.0
// The hot set of a run, for stores and orders that go by one.
#pragma once

#include <memory>

#include "base/files.h"
#include "base/status.h"
#include "comm/world.h"
#include "hotset_plan/hot_set.h"
#include "run/folder/progress.h"
#include "run/job_setting.h"
#include "run/resolved_run.h"

namespace recmill::train {

/// That of the file hotset.plan. Errors name the key.
Result<HotSet> hot_set_of_file(const ResolvedRun& run, Files& files);

/// That of the file hotset.plan, which is one of the run's tables and of equal meaning of rows; or
/// training inputs are counted (hotset.sample), by each rank its part, and decided by rank 0:
/// count_hot_inputs() decides the same. Collective over the processes of the world; the same in
/// every process. `free`: hot_problem(), as rank 0 has it. Errors name the key.
Result<std::shared_ptr<const HotSet>> find_hot_set(const ResolvedRun& run, int64_t free,
                                                   const JobIdentity& identity, World& world,
                                                   Files& files, Progress::Style style);

}  // namespace recmill::train
