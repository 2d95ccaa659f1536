// SPDX-License-Identifier: Apache-2.0
// What planners are given of a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "placement/planners.h"
#include "placement/problem.h"
#include "run/resolved_run.h"

namespace recmill::train {

/// Counts of the file placement.counts, or of the first placement.count_samples samples of the
/// training data where none is named, or of a sample of it (placement.sample): the same in every
/// process.
Result<AccessCounts> placement_counts(const ResolvedRun& run, Files& files);

/// Counts of nothing, for planners that do not go by them.
AccessCounts blank_counts(const ResolvedRun& run);

/// What a device may take where nobody says it: no limit, so that plans do not depend on the
/// machine. Whether the run fits is seen elsewhere.
inline constexpr int64_t kAnyMemory = int64_t{1} << 50;

/// The run's tables on the cluster of placement.cluster, or on as many devices as the run has
/// ranks, with links alike and `device_memory` bytes each. Errors name the key.
Result<placement::Problem> placement_problem(const ResolvedRun& run, AccessCounts counts,
                                             int64_t device_memory, Files& files);

/// What a problem says that nobody has measured, a line each.
std::vector<std::string> assumptions(const ResolvedRun& run, const placement::Problem& problem);

placement::PlannerOptions planner_options(const ResolvedRun& run);

}  // namespace recmill::train
