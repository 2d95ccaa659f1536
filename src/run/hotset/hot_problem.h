// SPDX-License-Identifier: Apache-2.0
// What a run's hot set is decided from.
#pragma once

#include <cstdint>

#include "hotset/hot_problem.h"
#include "run/resolved_run.h"

namespace recmill::train {

/// The run's tables, and what [hotset] says; `free` stands in for hotset.bytes = 0. Where hot rows
/// are near one GPU each, a table's are at the rank that holds it; else each rank has copies of
/// all.
hotset::HotProblem hot_problem(const ResolvedRun& run, int64_t free);

}  // namespace recmill::train
