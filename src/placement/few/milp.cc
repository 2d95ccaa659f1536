// SPDX-License-Identifier: Apache-2.0
// The planner that solves the placement problem of OPER's partitions as a mixed-integer program, as
// in table 3: for few partitions. Begins with OPER's own way.
#include <fmt/format.h>

#include <algorithm>

#include "placement/build_plan.h"
#include "placement/few/path_program.h"
#include "placement/few/place_few.h"
#include "placement/memory_budget.h"
#include "placement/oper/targets.h"
#include "placement/planners.h"

namespace recmill::placement {
namespace {

/// Partitions times devices, where rows may have copies: of more the search for a start alone takes
/// minutes.
constexpr int64_t kMostWithCopies = 2000;

/// Partitions are placed whole, so that of few large ones a device may have to take more than its
/// part: as much as these homes, OPER's own, give it, where it has that.
void admit(const Problem& problem, std::span<const Load> loads, std::span<const int> homes,
           std::vector<double>& budgets) {
  std::vector<double> held(budgets.size());
  for (size_t p = 0; p < loads.size(); ++p) held[homes[p]] += loads[p].memory;
  for (int d = 0; d < problem.devices(); ++d) {
    const auto limit = static_cast<double>(problem.cluster.devices[d].memory_bytes);
    budgets[d] = std::max(budgets[d], std::min(held[d], limit));
  }
}

/// By how many percent another way may be faster at most.
double gap_percent(const PathSolution& solution) {
  return solution.bound > 0 ? 100 * (solution.seconds / solution.bound - 1) : 0.0;
}

}  // namespace

Result<Proposal> plan_milp(const Problem& problem, const PlannerOptions& options) {
  const bool copies = !problem.training && options.extra_memory > 0;
  RECMILL_ASSIGN_OR_RETURN(auto budgets,
                           memory_budgets(problem, copies ? options.extra_memory : kBalanceSlack));
  const std::vector<HotOrder> orders = hot_orders(problem.counts);
  Thresholds thresholds = options.thresholds;
  Partitioning partitioning(problem, orders, thresholds);
  const auto too_many = [&] {
    const auto size = std::ssize(partitioning.partitions());
    return size > kFewLoads || (copies && size * problem.devices() > kMostWithCopies);
  };
  while (too_many() && thresholds.access < 1) {
    thresholds.access = std::min(2 * thresholds.access, 1.0);
    thresholds.memory = std::min(2 * thresholds.memory, 1.0);
    partitioning = Partitioning(problem, orders, thresholds);
  }
  if (copies && too_many())
    return Status::BadRequest(fmt::format(
        "milp: copies of {} partitions, the fewest that there are, on {} devices are too many; "
        "oper takes them, as does milp with extra_memory = 0",
        partitioning.partitions().size(), problem.devices()));
  std::vector<Load> loads;
  for (const Partition& partition : partitioning.partitions()) loads.push_back(partition.load);
  RECMILL_ASSIGN_OR_RETURN(const Targets targets,
                           find_targets(problem, partitioning.all(), partitioning.access_bounded(),
                                        DeviceCosts(problem), budgets));
  const std::vector<int> homes = balance(partitioning.partitions(), targets);
  admit(problem, loads, homes, budgets);
  RECMILL_ASSIGN_OR_RETURN(auto paths,
                           place_few(problem, loads, budgets, copies, homes, DeviceCosts(problem)));
  RECMILL_ASSIGN_OR_RETURN(
      const PathSolution solution,
      solve_paths(problem, loads, budgets, copies,
                  {options.milp_nodes, options.milp_iterations, 1e-4, 0}, paths));
  if (!solution.paths.empty()) paths = solution.paths;
  std::vector<PlacedPartition> placed;
  for (size_t p = 0; p < paths.size(); ++p)
    placed.push_back({&partitioning.partitions()[p], &paths[p]});
  Proposal proposal;
  proposal.plan = build_plan(problem, "milp", placed);
  proposal.partitions = static_cast<int64_t>(loads.size());
  proposal.access_bounded_share = partitioning.access_bounded_share();
  proposal.access_bounded_memory = partitioning.access_bounded_memory();
  proposal.notes.push_back(
      fmt::format("{} partitions at thresholds of {:.3g} %; no way of placing "
                  "them is more than {:.2f} % faster",
                  loads.size(), 100 * thresholds.access, gap_percent(solution)));
  return proposal;
}

}  // namespace recmill::placement
