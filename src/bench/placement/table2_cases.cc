// SPDX-License-Identifier: Apache-2.0
// OPER's table 2: bytes that a device gets from another one in a batch, by extra memory, on 8
// devices. `table2_SHAPE_ZIPF_{0,1,2,5,10,15,20}pct`: rows of the forward pass, each as often as it
// is looked up; `..._dedup`: each once a batch; `..._training`, `..._training_dedup`: rows and
// gradients; `..._other_seed`: rows of the forward pass by counts of other samples than the plan's,
// as copies of rows that were seen by chance save nothing later.
#include <fmt/format.h>

#include <cmath>

#include "bench/placement/placement_cases.h"
#include "bench/placement/shape_problem.h"

namespace recmill::bench {
namespace {

using placement::Balance;
using placement::DeviceCosts;
using placement::PlannerKind;
using placement::Problem;

constexpr int kDevices = 8;
constexpr int kExtras[] = {0, 1, 2, 5, 10, 15, 20};  // percent

struct Variant {
  const char* suffix;
  bool dedup, training;
};
constexpr Variant kVariants[] = {{"", false, false},
                                 {"_dedup", true, false},
                                 {"_training", false, true},
                                 {"_training_dedup", true, true}};

constexpr char kOtherSeedSuffix[] = "_other_seed";

/// Rows, and in training gradients and finished rows that follow them.
Balance pair_bytes(const DeviceCosts& costs) {
  std::vector<double> bytes;
  for (int to = 0; to < costs.devices(); ++to)
    for (int from = 0; from < costs.devices(); ++from)
      if (to != from)
        bytes.push_back(costs.moved(DeviceCosts::fetch, to, from) +
                        costs.moved(DeviceCosts::sum, to, from) +
                        costs.moved(DeviceCosts::reduce, to, from));
  return placement::balance_of(bytes);
}

/// Without copies every device has an eighth of what is looked up of each other one.
Status check_without_copies(const std::string& name, const Problem& problem, double mean) {
  double expected = 0;
  for (const placement::PlacedTable& table : problem.tables)
    expected += static_cast<double>(problem.samples * table.spec.dim) * sizeof(float) / kDevices;
  if (std::abs(mean / expected - 1) > 1e-9)
    return Status::Failed(fmt::format("{}: {} bytes a pair, not {}", name, mean, expected));
  return {};
}

std::string name_of(const std::string& prefix, int extra, const char* suffix) {
  return fmt::format("{}_{}pct{}", prefix, extra, suffix);
}

/// Where nothing is fetched there is no ratio to report.
void report(const std::string& name, const Balance& bytes, double without_copies,
            const BenchSink& sink) {
  BenchLine line = line_of(name, "mean_pair_bytes", bytes.mean, "bytes");
  if (without_copies > 0 && bytes.mean > 0) {
    line.rival = "0pct";
    line.ratio.ratio = without_copies / bytes.mean;
  }
  sink(line);
  sink(line_of(name, "variance_of_pair_bytes", bytes.variance, "bytes^2"));
}

Result<PlacementPlan> plan_with(const Problem& problem, int extra) {
  placement::PlannerOptions options;
  options.extra_memory = extra / 100.0;
  RECMILL_ASSIGN_OR_RETURN(RatedPlan rated, plan_and_rate(problem, PlannerKind::oper, options));
  return std::move(rated.proposal.plan);
}

Status run_variant(const std::string& prefix, const Variant& variant, Problem& problem,
                   const BenchOptions& options, const BenchSink& sink) {
  problem.dedup_fetch = variant.dedup;
  problem.training = variant.training;
  std::vector<std::string> names;
  for (const int extra : kExtras) names.push_back(name_of(prefix, extra, variant.suffix));
  if (!wants_any(options, names)) return {};
  double without_copies = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    if (kExtras[i] > 0 && !options.wants(names[i])) continue;
    RECMILL_ASSIGN_OR_RETURN(const PlacementPlan plan, plan_with(problem, kExtras[i]));
    const Balance bytes = pair_bytes(costs_of(problem, plan));
    if (kExtras[i] == 0 && !variant.dedup && !variant.training)
      RECMILL_RETURN_IF_ERROR(check_without_copies(names[i], problem, bytes.mean));
    if (options.wants(names[i])) report(names[i], bytes, without_copies, sink);
    if (kExtras[i] == 0) without_copies = bytes.mean;
  }
  return {};
}

/// Plans by the counts of `problem`, judged by those of other samples, which take their place.
Status run_other_seed(const std::string& prefix, const FrozenShape& shape, const Law& law,
                      Problem& problem, const BenchOptions& options, const BenchSink& sink) {
  std::vector<std::string> names;
  for (const int extra : kExtras) names.push_back(name_of(prefix, extra, kOtherSeedSuffix));
  if (!wants_any(options, names)) return {};
  problem.dedup_fetch = problem.training = false;
  std::vector<PlacementPlan> plans;
  for (const int extra : kExtras) {
    RECMILL_ASSIGN_OR_RETURN(PlacementPlan plan, plan_with(problem, extra));
    plans.push_back(std::move(plan));
  }
  problem.counts = {};
  RECMILL_ASSIGN_OR_RETURN(problem.counts, counts_for(shape, law, kOtherSeed, options));
  double without_copies = 0;
  for (size_t i = 0; i < plans.size(); ++i) {
    const Balance bytes = pair_bytes(costs_of(problem, plans[i]));
    if (options.wants(names[i])) report(names[i], bytes, without_copies, sink);
    if (i == 0) without_copies = bytes.mean;
  }
  return {};
}

}  // namespace

Status run_table2_cases(const BenchOptions& options, const BenchSink& sink) {
  for (const char* shape_name : {"avazu", "terabyte", "kaggle"}) {
    RECMILL_ASSIGN_OR_RETURN(const FrozenShape shape, frozen_shape(shape_name));
    for (const Law& law : kLaws) {
      const std::string prefix = fmt::format("table2_{}_{}", shape.name, law.name);
      std::vector<std::string> names;
      for (const Variant& variant : kVariants)
        for (const int extra : kExtras) names.push_back(name_of(prefix, extra, variant.suffix));
      for (const int extra : kExtras) names.push_back(name_of(prefix, extra, kOtherSeedSuffix));
      if (!wants_any(options, names)) continue;
      RECMILL_ASSIGN_OR_RETURN(AccessCounts counts, counts_for(shape, law, kPlannedSeed, options));
      Problem problem = problem_of(shape, std::move(counts), kDevices);
      for (const Variant& variant : kVariants)
        RECMILL_RETURN_IF_ERROR(run_variant(prefix, variant, problem, options, sink));
      RECMILL_RETURN_IF_ERROR(run_other_seed(prefix, shape, law, problem, options, sink));
    }
  }
  return {};
}

}  // namespace recmill::bench
