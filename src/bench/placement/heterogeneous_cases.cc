// SPDX-License-Identifier: Apache-2.0
// Plans for unequal devices and links, of Kaggle's shape: `heterogeneous_CLUSTER_ZIPF_{0,5}pct`.
//   2x4          two nodes of four devices; links between nodes take 4.21 times as long (figure 8)
//   4+2          nodes of four and of two, with the same links
//   slow_link    eight devices, one link of which takes ten times as long
//   half_memory  eight devices, one of which has half the memory
// Communication of a device is the fetch of rows in a batch, the busier of what it receives and
// what it sends; `received` is the former alone, as the paper counts. Access-greedy is beside.
//
// The limit of `largest_communication` is the optimum of a linear program: rows are merged with
// those of about the same accesses a byte into classes, any share of which may be on any device
// and, with extra memory, on several, within the memory that plans have; nothing but
// communication counts. Every plan is such a sharing but for the differences within a class, so
// that no plan's slowest device communicates less but for these.
//
// `figure8_ZIPF`: of the plan for 2x4 with 5 %, what a device fetches from another one, in units of
// the least such cost.
#include <fmt/format.h>

#include <algorithm>

#include "bench/placement/few_partitions.h"
#include "bench/placement/placement_cases.h"
#include "bench/placement/shape_problem.h"
#include "placement/few/path_program.h"
#include "placement/memory_budget.h"

namespace recmill::bench {
namespace {

using placement::Balance;
using placement::DeviceCosts;
using placement::Load;
using placement::PlannerKind;
using placement::Problem;

constexpr double kFarLink = 4.21;   // of a byte, a near link taking 1
constexpr double kSlowLink = 10.0;  // the same
constexpr int kExtras[] = {0, 5};   // percent
constexpr size_t kClasses = 100;    // of rows, in the bound

/// Links between the first `first` devices and the others are far.
void part_nodes(ClusterSpec& cluster, int first) {
  for (int to = 0; to < cluster.size(); ++to)
    for (int from = 0; from < cluster.size(); ++from)
      if ((to < first) != (from < first))
        cluster.links[to * cluster.size() + from].byte_seconds = kFarLink;
}

struct Kind {
  const char* name;
  int devices;
  void (*change)(ClusterSpec& cluster);
};
const Kind kKinds[] = {
    {"2x4", 8, [](ClusterSpec& cluster) { part_nodes(cluster, 4); }},
    {"4+2", 6, [](ClusterSpec& cluster) { part_nodes(cluster, 4); }},
    {"slow_link", 8,
     [](ClusterSpec& cluster) {
       cluster.links[0 * 8 + 1].byte_seconds = cluster.links[1 * 8 + 0].byte_seconds = kSlowLink;
     }},
    {"half_memory", 8, [](ClusterSpec& cluster) { cluster.devices[0].memory_bytes /= 2; }}};

struct Communication {
  Balance of_ports, received;  // of devices
};

Communication communication_of(const Problem& problem, const PlacementPlan& plan) {
  const DeviceCosts costs = costs_of(problem, plan);
  std::vector<double> ports, received;
  for (int to = 0; to < costs.devices(); ++to) {
    ports.push_back(costs.seconds(DeviceCosts::fetch, to));
    received.push_back(0);
    for (int from = 0; from < costs.devices(); ++from)
      if (from != to) received.back() += costs.fetch_seconds(to, from);
  }
  return {placement::balance_of(ports), placement::balance_of(received)};
}

/// Rows by accesses a byte of memory, in classes narrow enough that what differs within one is
/// little. Only fetched rows count.
std::vector<Load> row_classes(const Problem& problem, double extra) {
  placement::Thresholds thresholds;
  thresholds.list_dense_alone = false;
  thresholds.listed_share = std::max(thresholds.listed_share, extra);
  thresholds.listed_bytes = 1e-5 * static_cast<double>(problem.total_bytes());
  std::vector<Load> classes =
      merged_by_density(FewPartitions(problem, thresholds).loads(), kClasses);
  for (Load& load : classes) load.requested = load.looked_up = 0;
  return classes;
}

Result<double> least_communication(const Problem& problem, double extra) {
  Problem fetching = problem;
  for (int d = 0; d < problem.devices(); ++d)
    fetching.cluster.links[d * problem.devices() + d].byte_seconds = 0;
  RECMILL_ASSIGN_OR_RETURN(
      const auto budgets,
      placement::memory_budgets(problem, std::max(extra, placement::kBalanceSlack)));
  RECMILL_ASSIGN_OR_RETURN(
      const placement::CutSolution cut,
      placement::solve_by_cutting(fetching, row_classes(problem, extra), budgets, extra > 0));
  return cut.bound;
}

BenchLine largest_line(const std::string& name, const char* metric, const Balance& ours,
                       const Balance& greedy) {
  BenchLine line = line_of(name, metric, ours.largest, "byte times");
  line.rival = "access_greedy";
  line.ratio.ratio = greedy.largest / ours.largest;
  return line;
}

Status run_plan(const std::string& name, const Problem& problem, const RatedPlan& plan,
                double extra, const Communication& greedy, const BenchSink& sink) {
  if (const std::string lacking = plan.rating.does_not_fit(); !lacking.empty())
    return Status::Failed(name + ": " + lacking);
  const Communication ours = communication_of(problem, plan.proposal.plan);
  RECMILL_ASSIGN_OR_RETURN(const double least, least_communication(problem, extra));
  BenchLine line = largest_line(name, "largest_communication", ours.of_ports, greedy.of_ports);
  line.limit = least;
  line.of_limit = least / ours.of_ports.largest;
  sink(line);
  sink(largest_line(name, "largest_received", ours.received, greedy.received));
  sink(degree_line(name, "degree_of_communication", ours.of_ports.degree()));
  sink(degree_line(name, "degree_of_received", ours.received.degree()));
  sink(degree_line(name, "degree_of_memory", plan.rating.memory.degree()));
  sink(degree_line(name, "degree_of_lookups", plan.rating.lookups.degree()));
  return {};
}

void report_pairs(const std::string& name, const Problem& problem, const PlacementPlan& plan,
                  const BenchSink& sink) {
  const DeviceCosts costs = costs_of(problem, plan);
  const double least = rate(problem, plan).pair_communication.smallest;
  for (int to = 0; to < costs.devices(); ++to)
    for (int from = 0; from < costs.devices(); ++from)
      if (from != to)
        sink(line_of(name, fmt::format("communication_to_{}_from_{}", to, from),
                     costs.fetch_seconds(to, from) / std::max(least, 1e-300), "least costs"));
}

/// The cluster's cases, of which the one of 2x4 is figure 8 as well.
Status run_kind(const Kind& kind, const Law& law, const FrozenShape& shape,
                const AccessCounts& counts, const BenchOptions& options, const BenchSink& sink) {
  Problem problem = problem_of(shape, counts, kind.devices);
  kind.change(problem.cluster);
  RECMILL_ASSIGN_OR_RETURN(const RatedPlan greedy,
                           plan_and_rate(problem, PlannerKind::access_greedy, {}));
  const Communication of_greedy = communication_of(problem, greedy.proposal.plan);
  for (const int extra : kExtras) {
    const std::string name = fmt::format("heterogeneous_{}_{}_{}pct", kind.name, law.name, extra);
    const std::string matrix = fmt::format("figure8_{}", law.name);
    const bool draws = kind.name == std::string("2x4") && extra == 5 && options.wants(matrix);
    if (!options.wants(name) && !draws) continue;
    placement::PlannerOptions planner;
    planner.extra_memory = extra / 100.0;
    RECMILL_ASSIGN_OR_RETURN(const RatedPlan plan,
                             plan_and_rate(problem, PlannerKind::oper, planner));
    if (options.wants(name))
      RECMILL_RETURN_IF_ERROR(run_plan(name, problem, plan, planner.extra_memory, of_greedy, sink));
    if (draws) report_pairs(matrix, problem, plan.proposal.plan, sink);
  }
  return {};
}

}  // namespace

Status run_heterogeneous_cases(const BenchOptions& options, const BenchSink& sink) {
  RECMILL_ASSIGN_OR_RETURN(const FrozenShape shape, frozen_shape("kaggle"));
  for (const Law& law : kLaws) {
    AccessCounts counts;
    for (const Kind& kind : kKinds) {
      std::vector<std::string> names;
      for (const int extra : kExtras)
        names.push_back(fmt::format("heterogeneous_{}_{}_{}pct", kind.name, law.name, extra));
      if (kind.name == std::string("2x4")) names.push_back(fmt::format("figure8_{}", law.name));
      if (!wants_any(options, names)) continue;
      if (counts.tables.empty()) {
        RECMILL_ASSIGN_OR_RETURN(counts, counts_for(shape, law, kPlannedSeed, options));
      }
      RECMILL_RETURN_IF_ERROR(run_kind(kind, law, shape, counts, options, sink));
    }
  }
  return {};
}

}  // namespace recmill::bench
