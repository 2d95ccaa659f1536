// SPDX-License-Identifier: Apache-2.0
// The placement of a frozen shape's rows as a problem, and planners' answers to it, checked.
#pragma once

#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/placement/frozen_shapes.h"
#include "placement/cost_model.h"
#include "placement/planners.h"

namespace recmill::bench {

/// The laws that counts are drawn by, as names of cases say them.
struct Law {
  const char* name;
  double zipf;
};
inline constexpr Law kLaws[] = {{"1.05", 1.05}, {"1.2", 1.2}};

/// Seeds of the counts that plans are made of, and of those that they are judged by besides.
inline constexpr uint64_t kPlannedSeed = 1, kOtherSeed = 2;

/// Counts of 100 million lookups; with options.quick, of 5 million.
Result<AccessCounts> counts_for(const FrozenShape& shape, const Law& law, uint64_t seed,
                                const BenchOptions& options);

/// Inference without de-duplication, float32 rows without state, on equal devices with twice the
/// memory that rows take and lookups twenty times as fast as the links. A batch of a device has
/// 16,384 samples, of the two generated shapes 4,096.
placement::Problem problem_of(const FrozenShape& shape, AccessCounts counts, int devices);

struct RatedPlan {
  placement::Proposal proposal;
  placement::Rating rating;
  double seconds = 0;  // of the planner
};

/// Fails where the plan is none for the problem.
Result<RatedPlan> plan_and_rate(const placement::Problem& problem, placement::PlannerKind kind,
                                const placement::PlannerOptions& options);

/// Whether `plan` is one for the problem's tables and devices.
Status check_answer(const placement::Problem& problem, const PlacementPlan& plan);

/// A line of `bench placement` without a rival.
BenchLine line_of(const std::string& name, const std::string& metric, double value,
                  const std::string& unit);
/// The same of a degree of balance, in percent of what can be.
BenchLine degree_line(const std::string& name, const std::string& metric, double degree);

/// Whether any of `names` is wanted.
bool wants_any(const BenchOptions& options, const std::vector<std::string>& names);

}  // namespace recmill::bench
