// SPDX-License-Identifier: Apache-2.0
// Small programs to compare solvers on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "solve/mixed_integer_program.h"

namespace recmill::solve {

/// Items of `loads` on devices, each on one, so that the largest load is the least: a binary column
/// for each item and device, in this order, then the largest load, which may have to be whole.
MixedIntegerProgram assignment(std::span<const double> loads, int64_t devices, bool whole);

/// Whole numbers from 1 to `largest`.
std::vector<double> random_loads(const Random& random, uint64_t items, uint64_t largest);

/// In turn knapsacks, sums that must be met exactly and assignments; all columns are integer.
MixedIntegerProgram random_program(uint64_t number);

}  // namespace recmill::solve
