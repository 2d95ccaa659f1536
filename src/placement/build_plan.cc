// SPDX-License-Identifier: Apache-2.0
#include "placement/build_plan.h"

#include <algorithm>
#include <map>
#include <vector>

namespace recmill::placement {
namespace {

/// Numbers of paths, found in less time than by looking through the plan.
class PathNumbers {
 public:
  explicit PathNumbers(PlacementPlan& plan) : plan_(plan) {}
  int of(const FetchPath& path) {
    const auto [entry, fresh] =
        numbers_.try_emplace({path.home, path.from}, static_cast<int>(plan_.paths.size()));
    if (fresh) plan_.paths.push_back(path);
    return entry->second;
  }

 private:
  PlacementPlan& plan_;
  std::map<std::pair<int, std::vector<int>>, int> numbers_;
};

void append_run(std::vector<PlacedRun>& runs, int64_t end, int path) {
  if (!runs.empty() && runs.back().path == path) {
    runs.back().end = end;
  } else {
    runs.push_back({end, path});
  }
}

// Rows that go where their range goes need no place in the list.
void list_rows(const TableCounts& counts, const std::vector<int32_t>& paths,
               TablePlacement& table) {
  size_t run = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    const int64_t row = counts.hot_rows[i];
    while (table.runs[run].end <= row) ++run;
    if (paths[i] < 0 || paths[i] == table.runs[run].path) continue;
    table.listed_rows.push_back(row);
    table.listed_paths.push_back(paths[i]);
  }
}

}  // namespace

PlacementPlan blank_plan(const Problem& problem, const std::string& planner) {
  PlacementPlan plan{planner, problem.devices(), {}, {}};
  for (const PlacedTable& table : problem.tables) {
    TablePlacement placement;
    placement.table = table.spec.name;
    placement.rows = table.spec.rows;
    placement.dim = table.spec.dim;
    plan.tables.push_back(std::move(placement));
  }
  return plan;
}

PlacementPlan build_plan(const Problem& problem, const std::string& planner,
                         std::span<const PlacedPartition> placed) {
  PlacementPlan plan = blank_plan(problem, planner);
  PathNumbers numbers(plan);
  std::vector<std::vector<PlacedPartition>> of(plan.tables.size());
  for (const PlacedPartition& one : placed) of[one.partition->table].push_back(one);
  for (size_t t = 0; t < plan.tables.size(); ++t) {
    const TableCounts& counts = problem.counts.tables[t];
    std::ranges::stable_sort(of[t], {}, [](const auto& one) { return one.partition->begin; });
    std::vector<int32_t> paths(counts.hot_rows.size(), -1);
    for (const PlacedPartition& one : of[t]) {
      const int path = numbers.of(*one.path);
      if (!one.partition->access_bounded())
        append_run(plan.tables[t].runs, one.partition->end, path);
      for (const int64_t i : one.partition->listed) paths[i] = path;
    }
    list_rows(counts, paths, plan.tables[t]);
  }
  return plan;
}

}  // namespace recmill::placement
