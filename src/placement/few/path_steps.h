// SPDX-License-Identifier: Apache-2.0
// Paths that are one copy away from another.
#pragma once

#include "placement/problem.h"
#include "placement_plan/placement_plan.h"

namespace recmill::placement {

/// A copy that `device` reaches as fast as any; where several are, `turn` and the device say which.
int nearest_copy(const Problem& problem, const FetchPath& path, int device, int turn = 0);

/// With a copy on `device`, from which others fetch that reach it faster than theirs.
FetchPath with_copy(const Problem& problem, const FetchPath& path, int device);

/// Without the copy on `device`, which has one and is not alone; who fetched it takes the nearest.
FetchPath without_copy(const Problem& problem, const FetchPath& path, int device);

}  // namespace recmill::placement
