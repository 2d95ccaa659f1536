// SPDX-License-Identifier: Apache-2.0
#include "placement/few/place_few.h"

#include <algorithm>
#include <limits>

#include "placement/few/path_annealing.h"
#include "placement/few/path_program.h"
#include "placement/few/path_search.h"
#include "placement/oper/copy_shares.h"
#include "placement/oper/duplicate.h"

namespace recmill::placement {
namespace {

void add_all(std::span<const Load> loads, const std::vector<FetchPath>& paths, DeviceCosts& costs) {
  for (size_t p = 0; p < loads.size(); ++p) costs.add(loads[p], paths[p]);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kVeryFewLoads = 10;  // the search alone finds the best ways

bool fits(const DeviceCosts& costs, std::span<const double> budgets) {
  for (int d = 0; d < costs.devices(); ++d)
    if (costs.memory(d) > budgets[d] * (1 + 1e-9)) return false;
  return true;
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
  std::vector<std::vector<FetchPath>> starts{std::move(cut.paths)};
  if (problem.devices() <= kMostSharingDevices) {
    RECMILL_ASSIGN_OR_RETURN(SharedCopies shared,
                             share_copies(problem, loads, loads.size(), budgets));
    starts.push_back(std::move(shared.paths));
  }
  double least = fits(costs, budgets) ? costs.largest_seconds() : kInfinity;
  for (std::vector<FetchPath>& start : starts) {
    DeviceCosts of_start = placed;
    add_all(loads, start, of_start);
    search_paths(problem, loads, budgets, true, start, of_start);
    if (!fits(of_start, budgets) || of_start.largest_seconds() >= least) continue;
    least = of_start.largest_seconds();
    paths = std::move(start);
    costs = of_start;
  }
  if (least == kInfinity || loads.size() <= kVeryFewLoads) return paths;
  anneal_paths(problem, loads, budgets, paths, costs);
  search_paths(problem, loads, budgets, true, paths, costs);
  return paths;
}

}  // namespace recmill::placement
