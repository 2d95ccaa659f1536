// SPDX-License-Identifier: Apache-2.0
// OPER's table 3, on Kaggle's shape with 5 % extra memory: `table3_kaggle_ZIPF_THRESHOLD`: seconds
// of the planner at thresholds that it may not refine, the largest and the smallest communication
// of a device, and its degree of balance. `table3_kaggle_ZIPF_highs_5pct`: the same of HiGHS, which
// has the 5 % threshold's partitions and ten minutes (options.solver_seconds), and of OPER at 0.1 %
// beside it.
#include <fmt/format.h>

#include "base/clock.h"
#include "bench/placement/few_partitions.h"
#include "bench/placement/placement_cases.h"
#include "bench/placement/shape_problem.h"
#include "placement/few/path_program.h"
#include "placement/memory_budget.h"

namespace recmill::bench {
namespace {

using placement::Balance;
using placement::DeviceCosts;
using placement::PlannerKind;
using placement::Problem;

constexpr int kDevices = 8;
constexpr double kExtra = 0.05;
constexpr double kSolverSeconds = 600;

struct Grain {
  const char* name;
  double threshold;
};
constexpr Grain kGrains[] = {
    {"5pct", 0.05}, {"1pct", 0.01}, {"0.5pct", 0.005}, {"0.1pct", 0.001}, {"0.05pct", 0.0005}};

void report(const std::string& name, double seconds, const Balance& communication,
            const BenchSink& sink) {
  sink(line_of(name, "plan_time", seconds, "s"));
  sink(line_of(name, "largest_communication", communication.largest, "byte times"));
  sink(line_of(name, "smallest_communication", communication.smallest, "byte times"));
  sink(degree_line(name, "degree_of_communication", communication.degree()));
}

Result<RatedPlan> plan_at(const Problem& problem, double threshold) {
  placement::PlannerOptions options;
  options.extra_memory = kExtra;
  options.thresholds.access = options.thresholds.memory = threshold;
  options.refinements = 0;
  return plan_and_rate(problem, PlannerKind::oper, options);
}

struct Solved {
  double seconds = 0;
  Balance communication;
};

/// From the homes of a balanced placement without copies, so that the solver ends with something.
Result<Solved> solve_at(const Problem& problem, double threshold, double seconds) {
  placement::Thresholds thresholds;
  thresholds.access = thresholds.memory = threshold;
  const FewPartitions few(problem, thresholds);
  RECMILL_ASSIGN_OR_RETURN(const auto budgets, placement::memory_budgets(problem, kExtra));
  RECMILL_ASSIGN_OR_RETURN(const std::vector<int> homes, few.homes(problem, budgets));
  std::vector<FetchPath> paths;
  for (const int home : homes) paths.push_back(FetchPath::at(home, problem.devices()));
  const Stopwatch watch;
  RECMILL_ASSIGN_OR_RETURN(
      const placement::PathSolution solution,
      placement::solve_paths(problem, few.loads(), budgets, true, {0, 0, 1e-4, seconds}, paths));
  Solved solved;
  solved.seconds = watch.seconds();
  if (!solution.paths.empty()) paths = solution.paths;
  DeviceCosts costs(problem);
  for (size_t p = 0; p < paths.size(); ++p) costs.add(few.loads()[p], paths[p]);
  std::vector<double> communication;
  for (int d = 0; d < problem.devices(); ++d)
    communication.push_back(costs.seconds(DeviceCosts::fetch, d));
  solved.communication = placement::balance_of(communication);
  return solved;
}

Status run_solver(const std::string& name, const Problem& problem, const BenchOptions& options,
                  const BenchSink& sink) {
  RECMILL_ASSIGN_OR_RETURN(const RatedPlan oper, plan_at(problem, 0.001));
  RECMILL_ASSIGN_OR_RETURN(
      const Solved highs,
      solve_at(problem, 0.05,
               options.solver_seconds > 0 ? options.solver_seconds : kSolverSeconds));
  report(name, highs.seconds, highs.communication, sink);
  BenchLine line = line_of(name, "plan_time_of_oper_at_0.1pct", oper.seconds, "s");
  line.rival = "highs_at_5pct";
  line.ratio.ratio = highs.seconds / oper.seconds;
  sink(line);
  line = degree_line(name, "degree_of_communication_of_oper_at_0.1pct",
                     oper.rating.communication.degree());
  line.rival = "highs_at_5pct";
  line.ratio.ratio = oper.rating.communication.degree() / highs.communication.degree();
  sink(line);
  line = line_of(name, "largest_communication_of_oper_at_0.1pct", oper.rating.communication.largest,
                 "byte times");
  line.rival = "highs_at_5pct";
  line.ratio.ratio = highs.communication.largest / oper.rating.communication.largest;
  sink(line);
  return {};
}

}  // namespace

Status run_table3_cases(const BenchOptions& options, const BenchSink& sink) {
  RECMILL_ASSIGN_OR_RETURN(const FrozenShape shape, frozen_shape("kaggle"));
  for (const Law& law : kLaws) {
    const std::string prefix = fmt::format("table3_{}_{}", shape.name, law.name);
    std::vector<std::string> names{prefix + "_highs_5pct"};
    for (const Grain& grain : kGrains) names.push_back(fmt::format("{}_{}", prefix, grain.name));
    if (!wants_any(options, names)) continue;
    RECMILL_ASSIGN_OR_RETURN(AccessCounts counts, counts_for(shape, law, kPlannedSeed, options));
    const Problem problem = problem_of(shape, std::move(counts), kDevices);
    for (const Grain& grain : kGrains) {
      const std::string name = fmt::format("{}_{}", prefix, grain.name);
      if (!options.wants(name)) continue;
      RECMILL_ASSIGN_OR_RETURN(const RatedPlan plan, plan_at(problem, grain.threshold));
      report(name, plan.seconds, plan.rating.communication, sink);
    }
    if (options.wants(names[0]))
      RECMILL_RETURN_IF_ERROR(run_solver(names[0], problem, options, sink));
  }
  return {};
}

}  // namespace recmill::bench
