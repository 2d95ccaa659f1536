// SPDX-License-Identifier: Apache-2.0
#include "bench/placement/shape_problem.h"

#include <algorithm>

#include "base/clock.h"

namespace recmill::bench {
namespace {

constexpr int64_t kLookups = 100'000'000, kQuickLookups = 5'000'000;
constexpr double kLookupSeconds = 0.05;  // of a byte, a link taking 1

}  // namespace

Result<AccessCounts> counts_for(const FrozenShape& shape, const Law& law, uint64_t seed,
                                const BenchOptions& options) {
  ThreadPool pool(static_cast<int>(options.threads));
  return draw_counts(shape, law.zipf, seed, options.quick ? kQuickLookups : kLookups, pool);
}

placement::Problem problem_of(const FrozenShape& shape, AccessCounts counts, int devices) {
  placement::Problem problem;
  for (const TableSpec& table : shape.spec().tables)
    problem.tables.push_back({table, table.dim * static_cast<int64_t>(sizeof(float))});
  problem.counts = std::move(counts);
  problem.cluster =
      placement::equal_devices(devices, 2 * problem.total_bytes() / devices, kLookupSeconds);
  problem.samples = shape.name.starts_with("syn_") ? 4096 : 16384;
  problem.training = false;
  problem.dedup_fetch = false;
  return problem;
}

Status check_answer(const placement::Problem& problem, const PlacementPlan& plan) {
  std::vector<TableSpec> specs;
  for (const placement::PlacedTable& table : problem.tables) specs.push_back(table.spec);
  return check_plan(plan, specs, problem.devices());
}

Result<RatedPlan> plan_and_rate(const placement::Problem& problem, placement::PlannerKind kind,
                                const placement::PlannerOptions& options) {
  RatedPlan result;
  const Stopwatch watch;
  RECMILL_ASSIGN_OR_RETURN(result.proposal, plan_placement(problem, kind, options));
  result.seconds = watch.seconds();
  RECMILL_RETURN_IF_ERROR(check_answer(problem, result.proposal.plan));
  result.rating = rate(problem, result.proposal.plan);
  return result;
}

BenchLine line_of(const std::string& name, const std::string& metric, double value,
                  const std::string& unit) {
  BenchLine line;
  line.bench = "placement";
  line.name = name;
  line.metric = metric;
  line.value = value;
  line.unit = unit;
  return line;
}

BenchLine degree_line(const std::string& name, const std::string& metric, double degree) {
  BenchLine line = line_of(name, metric, 100 * degree, "%");
  line.limit = 100;
  line.of_limit = degree;
  return line;
}

bool wants_any(const BenchOptions& options, const std::vector<std::string>& names) {
  return std::ranges::any_of(names, [&](const std::string& name) { return options.wants(name); });
}

}  // namespace recmill::bench
