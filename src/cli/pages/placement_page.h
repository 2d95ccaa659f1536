// SPDX-License-Identifier: Apache-2.0
// `recmill plan placement --html`: what each planner makes of the devices, in pictures.
#pragma once

#include <string>
#include <vector>

#include "placement/plan_summary.h"

namespace recmill::cli {

/// One page without scripts. `name`: of the run; `assumed`: what was not measured, a line each.
std::string placement_page(const std::string& name, const placement::Problem& problem,
                           const std::vector<placement::PlannedWay>& ways,
                           const std::vector<std::string>& assumed);

}  // namespace recmill::cli
