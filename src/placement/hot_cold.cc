// SPDX-License-Identifier: Apache-2.0
// Hot rows on every device, the others as OPER places them (FAE's replicator, section III-B).
#include <fmt/format.h>

#include <algorithm>

#include "placement/planners.h"

namespace recmill::placement {
namespace {

/// Counts as they are of what is fetched, where each device has its own copies of hot rows.
AccessCounts without_hot_rows(AccessCounts counts, const HotSet& set) {
  const HotRows hot(set);
  for (size_t t = 0; t < counts.tables.size(); ++t) {
    TableCounts& table = counts.tables[t];
    TableCounts left = table;
    left.hot_rows.clear();
    left.hot_counts.clear();
    if (left.tail_rows_by_count.empty()) left.tail_rows_by_count.push_back(0);
    for (size_t i = 0; i < table.hot_rows.size(); ++i) {
      if (hot.is_hot(t, table.hot_rows[i])) {
        left.lookups -= table.hot_counts[i];
        ++left.tail_rows_by_count[0];
        continue;
      }
      left.hot_rows.push_back(table.hot_rows[i]);
      left.hot_counts.push_back(table.hot_counts[i]);
    }
    table = std::move(left);
  }
  return counts;
}

/// `plan`, in which rows have one copy, with copies of the table's hot rows on every device.
void copy_hot_rows(const HotTable& hot, PlacementPlan& plan, TablePlacement& table) {
  const auto everywhere = [&](int path) {
    return plan.path(
        FetchPath::everywhere(plan.paths[static_cast<size_t>(path)].home, plan.devices));
  };
  if (hot.all_hot) {
    for (PlacedRun& run : table.runs) run.path = everywhere(run.path);
    for (int32_t& path : table.listed_paths) path = everywhere(path);
    return;
  }
  TablePlacement copied = table;
  copied.listed_rows.clear();
  copied.listed_paths.clear();
  PathCursor cursor(table);
  size_t next = 0;
  const auto keep_until = [&](int64_t row) {  // listed rows that are not hot
    for (; next < table.listed_rows.size() && table.listed_rows[next] < row; ++next) {
      copied.listed_rows.push_back(table.listed_rows[next]);
      copied.listed_paths.push_back(table.listed_paths[next]);
    }
    if (next < table.listed_rows.size() && table.listed_rows[next] == row) ++next;
  };
  for (const int64_t row : hot.hot_rows) {
    keep_until(row);
    copied.listed_rows.push_back(row);
    copied.listed_paths.push_back(everywhere(cursor.at(row)));
  }
  keep_until(table.rows);
  table = std::move(copied);
}

}  // namespace

Result<Proposal> plan_hot_cold(const Problem& problem, const PlannerOptions& options) {
  if (problem.hot_set == nullptr)
    return Status::BadRequest("hot_cold goes by a hot set, and there is none");
  Problem rest = problem;
  rest.counts = without_hot_rows(problem.counts, *problem.hot_set);
  PlannerOptions without_copies = options;
  without_copies.extra_memory = 0;
  RECMILL_ASSIGN_OR_RETURN(Proposal proposal, plan_oper(rest, without_copies));
  for (size_t t = 0; t < proposal.plan.tables.size(); ++t)
    copy_hot_rows(problem.hot_set->tables[t], proposal.plan, proposal.plan.tables[t]);
  proposal.plan.planner = "hot_cold";
  proposal.notes.push_back(
      fmt::format("{} hot rows, of {} lookups or more in {} inputs, have a copy on every device",
                  problem.hot_set->hot(), std::max<int64_t>(problem.hot_set->cutoff, 1),
                  problem.hot_set->inputs));
  return proposal;
}

}  // namespace recmill::placement
