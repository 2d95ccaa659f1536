// SPDX-License-Identifier: Apache-2.0
// A plan and its rating as people and programs read them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json/json_fwd.h"
#include "placement/cost_model.h"
#include "placement/planners.h"

namespace recmill::placement {

/// Where the rows of a table go.
struct TableSummary {
  std::string table;
  int64_t rows = 0, dim = 0;
  std::vector<int64_t> rows_at;  // [devices], by home; of columns: all rows at each that has some
  int64_t copied = 0;            // rows with more than one copy
  double bytes = 0;              // of all copies
  std::string rule;              // "whole on device 3", "columns over devices 0, 1", ...
};
std::vector<TableSummary> summarize(const Problem& problem, const PlacementPlan& plan);

/// One planner's answer.
struct PlannedWay {
  PlannerKind kind = PlannerKind::oper;
  std::string name;     // of a plan that no planner has made here; else empty
  double seconds = 0;   // that planning took
  std::string refused;  // why there is none; empty: there is
  Proposal proposal;
  Rating rating;

  std::string title() const { return name.empty() ? std::string(name_of(kind)) : name; }
};

/// "use oper: 14 % less time a batch than table_wise, the next best": of the plans that fit, the
/// one with the least predicted time, the first of several within 1 %. Empty: none fits.
std::string recommendation(const std::vector<PlannedWay>& ways);

/// One line a planner: memory, lookups and communication with their balance, copies, time.
std::string table_of(const std::vector<PlannedWay>& ways);
/// Device by device, pair by pair and table by table.
std::string explain(const Problem& problem, const PlannedWay& way);
Json to_json(const Problem& problem, const PlannedWay& way);

}  // namespace recmill::placement
