// SPDX-License-Identifier: Apache-2.0
// What a solver says of a MixedIntegerProgram.
#pragma once

#include <cstdint>
#include <vector>

#include "solve/mixed_integer_program.h"

namespace recmill::solve {

enum class Outcome {
  optimal,                      // within Limits::relative_gap
  limit_reached_with_solution,  // which is not proven to be the best
  limit_reached_without,        // there may be one
  infeasible,                   // there is none
  unbounded,                    // there is one below any number
};

const char* name_of(Outcome outcome);

struct Solution {
  Outcome outcome = Outcome::limit_reached_without;
  std::vector<double> values;      // of the columns, integer ones whole; if has_values()
  double objective = kInfinity;    // of `values`; unbounded: -infinity
  double dual_bound = -kInfinity;  // no solution is below it; infeasible: infinity
  int64_t nodes = 0;               // of the search tree
  int64_t iterations = 0;          // of the simplex method
  bool has_values() const {
    return outcome == Outcome::optimal || outcome == Outcome::limit_reached_with_solution;
  }
  bool operator==(const Solution&) const = default;
};

}  // namespace recmill::solve
