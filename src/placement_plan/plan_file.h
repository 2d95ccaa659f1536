// SPDX-License-Identifier: Apache-2.0
// A plan on disk: JSON that a user may read and edit, and listed rows in a file beside it.
// docs/formats/placement_plan.md.
#pragma once

#include <string>

#include "base/files.h"
#include "placement_plan/placement_plan.h"

namespace recmill {

/// What a plan's files hold.
struct PlanFiles {
  std::string text;
  std::string rows;  // beside it; empty: no row is listed
};
PlanFiles encode_plan(const PlacementPlan& plan);
/// Fails as read_plan() of `path`.
Result<PlacementPlan> decode_plan(const PlanFiles& files, const std::string& path);

/// Writes `path` and, where rows are listed, `path`.rows before it. The same plan, the same bytes.
Status write_plan(Files& files, const std::string& path, const PlacementPlan& plan);

/// Fails, naming the file, on a damaged one; an edit that makes no plan is a bad request that names
/// table and row. Whether it fits a model says check_plan().
Result<PlacementPlan> read_plan(Files& files, const std::string& path);

}  // namespace recmill
