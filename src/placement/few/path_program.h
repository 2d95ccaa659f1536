// SPDX-License-Identifier: Apache-2.0
// The placement problem of section 3.3 as a mixed-integer program, for partitions few enough.
#pragma once

#include <span>
#include <vector>

#include "placement/device_costs.h"
#include "placement_plan/placement_plan.h"
#include "solve/solve.h"

namespace recmill::placement {

struct PathSolution {
  std::vector<FetchPath> paths;  // [loads]; empty: none was found
  double seconds = 0;            // of the slowest device, as the program has it
  double bound = 0;              // no paths are faster
};

/// The paths with the fastest slowest device within `budgets` [devices] bytes. With `copies`
/// (inference only) a load may have several. `start`: paths to begin with, or none. Bad request
/// where no paths fit.
Result<PathSolution> solve_paths(const Problem& problem, std::span<const Load> loads,
                                 std::span<const double> budgets, bool copies,
                                 const solve::Limits& limits,
                                 std::span<const FetchPath> start = {});

/// Whether it is certain that no paths with copies (inference) take `seconds` or less: HiGHS has
/// found, before its limits, that there are none even if loads that are much alike all took as
/// little as the least of them.
Result<bool> rule_out(const Problem& problem, std::span<const Load> loads,
                      std::span<const double> budgets, double seconds, const solve::Limits& limits);

struct CutSolution {
  double bound = 0;              // seconds: no paths are faster
  std::vector<FetchPath> paths;  // [loads], each where most of it is; may take too much memory
};

/// The same of loads that may be cut at will: a linear program.
Result<CutSolution> solve_by_cutting(const Problem& problem, std::span<const Load> loads,
                                     std::span<const double> budgets, bool copies);

}  // namespace recmill::placement
