// SPDX-License-Identifier: Apache-2.0
// When rows are to be placed anew, because they are no longer looked up as they were.
#pragma once

#include <cstdint>

#include "placement/problem.h"
#include "placement_plan/placement_plan.h"

namespace recmill::placement {

/// What it takes to go from one plan to another.
struct PlanMove {
  double rows = 0;     // that some device gets from another, by device
  double bytes = 0;    // of them, with their state
  double seconds = 0;  // of the slowest device, which sends and receives at the same time
};

/// Of two plans for the problem's tables and devices; counts are not looked at. Each device gets a
/// row from where it fetched it. Time: linear in ranges and listed rows.
PlanMove move_between(const Problem& problem, const PlacementPlan& from, const PlacementPlan& to);

/// Predicted seconds of a batch (Rating::seconds), and what is known beside them.
struct ReplanCase {
  double expected = 0;  // of the plan in force, by the lookups of the time when it came
  double now = 0;       // of the same plan, by those of late
  double gain = 0.1;    // the least part by which a plan must be slower or faster to count
};

/// Whether lookups have changed so that the plan loses by it.
bool has_drifted(const ReplanCase& of);
/// Whether a plan of `planned` seconds, by the lookups of late as well, gains more in the
/// `iterations` that are left than the move to it takes.
bool pays(const ReplanCase& of, double planned, double move_seconds, int64_t iterations);

}  // namespace recmill::placement
