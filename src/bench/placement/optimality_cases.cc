// SPDX-License-Identifier: Apache-2.0
// How near the search for few partitions comes to the best placement.
// `optimality_{50,100,200}`: the slowest device's time for the finest partitions, so many at most,
// of the 6, 12 and 26 largest tables of Kaggle's shape, each in one place of 4 devices that have 5
// % more memory than rows take; `..._copies`: with copies. The limit is the bound that HiGHS proves
// in 60 seconds (options.solver_seconds), below which no placement of these partitions is; the
// rival is the placement that HiGHS finds meanwhile, with copies starting from ours.
// `optimality_8x3`, `optimality_8x3_copies`: of 100 random problems of 8 partitions on 3 devices
// with unequal links the one where ours is the farthest from the best placement: its time in units
// of that one's.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "base/clock.h"
#include "base/random.h"
#include "bench/placement/few_partitions.h"
#include "bench/placement/placement_cases.h"
#include "bench/placement/shape_problem.h"
#include "placement/few/path_program.h"
#include "placement/few/place_few.h"
#include "placement/memory_budget.h"

namespace recmill::bench {
namespace {

using placement::DeviceCosts;
using placement::Load;
using placement::Problem;

constexpr int kDevices = 4;
constexpr double kExtra = 0.05;
constexpr double kSolverSeconds = 60;
constexpr double kRulingOut = 0.75;  // of them, with copies
/// So few tables that their hottest rows can be partitions of their own.
struct Bounded {
  size_t partitions, tables;
};
constexpr Bounded kBounded[] = {{50, 6}, {100, 12}, {200, 26}};
constexpr uint64_t kSeeds = 100;

std::string case_name(size_t partitions, bool copies) {
  return fmt::format("optimality_{}{}", partitions, copies ? "_copies" : "");
}

/// Seconds of the slowest device; infinite where memory is short.
double slowest(const Problem& problem, std::span<const Load> loads, std::span<const double> budgets,
               std::span<const FetchPath> paths) {
  DeviceCosts costs(problem);
  for (size_t p = 0; p < loads.size(); ++p) costs.add(loads[p], paths[p]);
  for (int d = 0; d < problem.devices(); ++d)
    if (costs.memory(d) > budgets[d] * (1 + 1e-9)) return std::numeric_limits<double>::infinity();
  return costs.largest_seconds();
}

/// The problem of the largest tables alone.
Problem largest_tables(const Problem& all, size_t tables) {
  std::vector<size_t> order(all.tables.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](size_t t) { return all.tables[t].spec.rows; });
  order.resize(tables);
  Problem problem = all;
  problem.tables.clear();
  problem.counts.tables.clear();
  for (const size_t t : order) {
    problem.tables.push_back(all.tables[t]);
    problem.counts.tables.push_back(all.counts.tables[t]);
  }
  return problem;
}

/// The longest time that HiGHS can rule out, of those somewhat below `seconds`.
Result<double> bound_by_ruling_out(const Problem& problem, std::span<const Load> loads,
                                   std::span<const double> budgets, double seconds,
                                   double solver_seconds) {
  const Stopwatch watch;
  double bound = 0;
  for (const double share : {0.955, 0.97, 0.98, 0.99}) {
    const double left = solver_seconds - watch.seconds();
    if (left <= 0) break;
    RECMILL_ASSIGN_OR_RETURN(
        const bool none,
        placement::rule_out(problem, loads, budgets, share * seconds, {0, 0, 0.0, left}));
    if (!none) break;
    bound = share * seconds;
  }
  return bound;
}

Status run_bounded(const Bounded& bounded, bool copies, const Problem& all,
                   const BenchOptions& options, const BenchSink& sink) {
  const std::string name = case_name(bounded.partitions, copies);
  if (!options.wants(name)) return {};
  const Problem problem = largest_tables(all, bounded.tables);
  const FewPartitions few = finest_partitions(problem, bounded.partitions);
  RECMILL_ASSIGN_OR_RETURN(const auto budgets, placement::memory_budgets(problem, kExtra));
  RECMILL_ASSIGN_OR_RETURN(const std::vector<int> homes, few.homes(problem, budgets));
  RECMILL_ASSIGN_OR_RETURN(
      const std::vector<FetchPath> paths,
      placement::place_few(problem, few.loads(), budgets, copies, homes, DeviceCosts(problem)));
  double seconds = options.solver_seconds > 0 ? options.solver_seconds : kSolverSeconds;
  BenchLine line =
      line_of(name, "slowest_device", slowest(problem, few.loads(), budgets, paths), "byte times");
  if (copies) {  // HiGHS can tell sooner that nothing is so fast than what is the fastest
    const double ruling_out = kRulingOut * seconds;
    seconds -= ruling_out;
    RECMILL_ASSIGN_OR_RETURN(
        line.limit, bound_by_ruling_out(problem, few.loads(), budgets, line.value, ruling_out));
  }
  // Bounds rise sooner from a good placement on.
  const std::vector<FetchPath> start = copies ? paths : std::vector<FetchPath>{};
  RECMILL_ASSIGN_OR_RETURN(
      const placement::PathSolution highs,
      placement::solve_paths(problem, few.loads(), budgets, copies, {0, 0, 0.0, seconds}, start));
  line.limit = std::max(line.limit, highs.bound);
  line.of_limit = line.limit / line.value;
  if (line.of_limit > 1 + 1e-5)
    return Status::Failed(
        fmt::format("{}: {} is below the bound {}", name, line.value, line.limit));
  if (!highs.paths.empty()) {
    line.rival = "highs";
    line.ratio.ratio = slowest(problem, few.loads(), budgets, highs.paths) / line.value;
  }
  sink(line);
  sink(line_of(name, "partitions", static_cast<double>(few.loads().size()), "partitions"));
  return {};
}

/// Unequal links, and partitions whose accesses are e^4 apart.
struct SmallProblem {
  static constexpr int kDevices = 3;
  static constexpr size_t kLoads = 8;
  Problem problem;
  std::vector<Load> loads;
  std::vector<double> budgets;

  explicit SmallProblem(uint64_t seed) : loads(kLoads) {
    const Random random(seed, Purpose::test);
    uint64_t item = 0;
    const auto uniform = [&] { return random.uniform64(item++); };
    problem.cluster = placement::equal_devices(kDevices, 1'000'000, 0.2);
    for (int to = 0; to < kDevices; ++to)
      for (int from = 0; from < to; ++from)
        problem.cluster.links[to * kDevices + from].byte_seconds =
            problem.cluster.links[from * kDevices + to].byte_seconds = 1 + 4 * uniform();
    problem.training = false;
    double memory = 0;
    for (Load& load : loads) {
      load.memory = 50 + 100 * uniform();
      load.fetched = load.looked_up = std::exp(4 * uniform());
      load.requested = load.fetched / 8;
      memory += load.memory;
    }
    budgets.assign(kDevices, 1.6 * memory / kDevices);
  }
};

/// Of all ways to give each load one of three devices.
double best_of_all_ways(const SmallProblem& small) {
  constexpr int kDevices = SmallProblem::kDevices;
  const auto ways = static_cast<int64_t>(std::pow(kDevices, SmallProblem::kLoads));
  double best = std::numeric_limits<double>::infinity();
  for (int64_t way = 0; way < ways; ++way) {
    std::vector<FetchPath> paths;
    for (int64_t rest = way; paths.size() < SmallProblem::kLoads; rest /= kDevices)
      paths.push_back(FetchPath::at(static_cast<int>(rest % kDevices), kDevices));
    best = std::min(best, slowest(small.problem, small.loads, small.budgets, paths));
  }
  return best;
}

Status run_small(bool copies, const BenchOptions& options, const BenchSink& sink) {
  const std::string name = fmt::format("optimality_8x3{}", copies ? "_copies" : "");
  if (!options.wants(name)) return {};
  double worst = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const SmallProblem small(seed);
    std::vector<int> homes;
    for (size_t p = 0; p < small.loads.size(); ++p)
      homes.push_back(static_cast<int>(p) % SmallProblem::kDevices);
    RECMILL_ASSIGN_OR_RETURN(const std::vector<FetchPath> paths,
                             placement::place_few(small.problem, small.loads, small.budgets, copies,
                                                  homes, DeviceCosts(small.problem)));
    RECMILL_ASSIGN_OR_RETURN(
        const placement::PathSolution solved,
        placement::solve_paths(small.problem, small.loads, small.budgets, copies, {}));
    const double best = copies ? solved.seconds : best_of_all_ways(small);
    if (std::abs(solved.seconds / best - 1) > 1e-5)
      return Status::Failed(fmt::format("{}: the solver says {}, looking through all ways {}", name,
                                        solved.seconds, best));
    worst = std::max(worst, slowest(small.problem, small.loads, small.budgets, paths) / best);
  }
  BenchLine line = line_of(name, "worst_of_100_beside_the_best", worst, "best times");
  line.limit = 1;
  line.of_limit = 1 / worst;
  sink(line);
  return {};
}

}  // namespace

Status run_optimality_cases(const BenchOptions& options, const BenchSink& sink) {
  for (const bool copies : {false, true}) RECMILL_RETURN_IF_ERROR(run_small(copies, options, sink));
  std::vector<std::string> names;
  for (const Bounded& bounded : kBounded)
    for (const bool copies : {false, true}) names.push_back(case_name(bounded.partitions, copies));
  if (!wants_any(options, names)) return {};
  RECMILL_ASSIGN_OR_RETURN(const FrozenShape shape, frozen_shape("kaggle"));
  RECMILL_ASSIGN_OR_RETURN(AccessCounts counts, counts_for(shape, kLaws[0], kPlannedSeed, options));
  const Problem problem = problem_of(shape, std::move(counts), kDevices);
  for (const bool copies : {false, true})
    for (const Bounded& bounded : kBounded)
      RECMILL_RETURN_IF_ERROR(run_bounded(bounded, copies, problem, options, sink));
  return {};
}

}  // namespace recmill::bench
