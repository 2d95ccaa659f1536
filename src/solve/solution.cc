// SPDX-License-Identifier: Apache-2.0
#include "solve/solution.h"

namespace recmill::solve {

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::optimal:
      return "optimal";
    case Outcome::limit_reached_with_solution:
      return "limit_reached_with_solution";
    case Outcome::limit_reached_without:
      return "limit_reached_without";
    case Outcome::infeasible:
      return "infeasible";
    case Outcome::unbounded:
      return "unbounded";
  }
  return "";
}

}  // namespace recmill::solve
