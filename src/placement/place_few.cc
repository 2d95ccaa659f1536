// SPDX-License-Identifier: Apache-2.0
#include "placement/place_few.h"

#include <algorithm>

#include "placement/duplicate.h"
#include "placement/path_program.h"
#include "placement/path_search.h"

namespace recmill::placement {
namespace {

void add_all(std::span<const Load> loads, const std::vector<FetchPath>& paths, DeviceCosts& costs) {
  for (size_t p = 0; p < loads.size(); ++p) costs.add(loads[p], paths[p]);
}

}  // namespace

Result<std::vector<FetchPath>> place_few(const Problem& problem, std::span<const Load> loads,
                                         std::span<const double> budgets, bool copies,
                                         std::span<const int> homes, const DeviceCosts& placed) {
  std::vector<FetchPath> paths;
  for (const int home : homes) paths.push_back(FetchPath::at(home, problem.devices()));
  DeviceCosts costs = placed;
  add_all(loads, paths, costs);
  search_paths(problem, loads, budgets, false, paths, costs);
  if (!copies) return paths;
  std::vector<double> spare;
  for (int d = 0; d < problem.devices(); ++d)
    spare.push_back(std::max(budgets[d] - costs.memory(d), 0.0));
  duplicate_for_inference(problem, loads, paths, spare, costs);
  search_paths(problem, loads, budgets, true, paths, costs);
  RECMILL_ASSIGN_OR_RETURN(CutSolution cut, solve_by_cutting(problem, loads, budgets, true));
  DeviceCosts of_cut = placed;
  add_all(loads, cut.paths, of_cut);
  search_paths(problem, loads, budgets, true, cut.paths, of_cut);
  for (int d = 0; d < problem.devices(); ++d)
    if (of_cut.memory(d) > budgets[d] * (1 + 1e-9)) return paths;
  return of_cut.largest_seconds() < costs.largest_seconds() ? cut.paths : paths;
}

}  // namespace recmill::placement
