// SPDX-License-Identifier: Apache-2.0
// OPER's figure 10: `figure10_SHAPE_ZIPF_PLANNER`: the largest, smallest and mean memory, lookups
// and communication of a device, and communication of a pair, of 8 devices. OPER has 5 % extra
// memory.
#include <fmt/format.h>

#include "bench/placement/placement_cases.h"
#include "bench/placement/shape_problem.h"

namespace recmill::bench {
namespace {

using placement::Balance;
using placement::PlannerKind;
using placement::Problem;
using placement::Rating;

constexpr int kDevices = 8;
constexpr PlannerKind kPlanners[] = {PlannerKind::memory_greedy, PlannerKind::access_greedy,
                                     PlannerKind::table_wise, PlannerKind::torchrec_like,
                                     PlannerKind::oper};

void report(const std::string& name, const char* what, const Balance& of, const char* unit,
            const BenchSink& sink) {
  sink(line_of(name, fmt::format("largest_{}", what), of.largest, unit));
  sink(line_of(name, fmt::format("smallest_{}", what), of.smallest, unit));
  sink(line_of(name, fmt::format("mean_{}", what), of.mean, unit));
}

Status run_planner(const std::string& name, PlannerKind planner, const Problem& problem,
                   const BenchSink& sink) {
  RECMILL_ASSIGN_OR_RETURN(const RatedPlan plan, plan_and_rate(problem, planner, {}));
  const Rating& rating = plan.rating;
  report(name, "memory", rating.memory, "bytes", sink);
  report(name, "lookups", rating.lookups, "bytes", sink);
  report(name, "communication_of_a_device", rating.communication, "byte times", sink);
  report(name, "communication_of_a_pair", rating.pair_bytes, "bytes", sink);
  return {};
}

}  // namespace

Status run_figure10_cases(const BenchOptions& options, const BenchSink& sink) {
  for (const char* shape_name : {"avazu", "terabyte", "kaggle"}) {
    RECMILL_ASSIGN_OR_RETURN(const FrozenShape shape, frozen_shape(shape_name));
    for (const Law& law : kLaws) {
      std::vector<std::string> names;
      for (const PlannerKind planner : kPlanners)
        names.push_back(fmt::format("figure10_{}_{}_{}", shape.name, law.name, name_of(planner)));
      if (!wants_any(options, names)) continue;
      RECMILL_ASSIGN_OR_RETURN(AccessCounts counts, counts_for(shape, law, kPlannedSeed, options));
      const Problem problem = problem_of(shape, std::move(counts), kDevices);
      for (size_t i = 0; i < names.size(); ++i)
        if (options.wants(names[i]))
          RECMILL_RETURN_IF_ERROR(run_planner(names[i], kPlanners[i], problem, sink));
    }
  }
  return {};
}

}  // namespace recmill::bench
