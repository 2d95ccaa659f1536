// SPDX-License-Identifier: Apache-2.0
// The plain way, for small programs: tries everything. What solve.h is held to.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "solve/solution.h"

namespace recmill::solve {

/// The first of the best combinations of whole values, in lexicographic order of columns, or
/// `infeasible`. Leaves out what the columns before already rule out by some row. Refuses a program
/// with a continuous column, one without bounds, or more than `most_combinations`.
Result<Solution> solve_exhaustively(const MixedIntegerProgram& program, int64_t most_combinations);

}  // namespace recmill::solve
