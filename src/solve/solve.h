// SPDX-License-Identifier: Apache-2.0
// Solves a MixedIntegerProgram, by HiGHS. One thread, no output, and the same program with the same
// limits gives the same bits, as long as none of the limits is a time.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "solve/solution.h"

namespace recmill::solve {

/// When to be content with less than the optimum.
struct Limits {
  int64_t nodes = 0;          // of the search tree; 0: no limit
  int64_t iterations = 0;     // of the simplex method; looked at between its runs, so that a search
                              // with integer columns goes over it by some; 0: no limit
  double relative_gap = 0.0;  // between the objective and the dual bound, of the objective
  /// 0: no limit. For benchmarks alone: what is found by then is another thing each time.
  double seconds = 0.0;
};

/// `start` may be empty, or a value for each column, from which the search goes on: of a program
/// with integer columns, where these can be completed to a solution. Otherwise it is not used.
Result<Solution> solve(const MixedIntegerProgram& program, const Limits& limits = {},
                       std::span<const double> start = {});

}  // namespace recmill::solve
