// SPDX-License-Identifier: Apache-2.0
// How even OPER's plans are, and what making them takes. `balance_SHAPE_ZIPF_{0,1,5}pct`: degrees
// of balance on 8 devices with so much extra memory; `balance_..._other_seed`: the same plan by
// counts of other samples. `plan_time_SHAPE_ZIPF_{0,5}pct`: seconds from the file of counts to the
// plan, and the process's largest resident memory meanwhile.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <fstream>

#include "base/clock.h"
#include "base/temporary_folder.h"
#include "bench/placement/placement_cases.h"
#include "bench/placement/shape_problem.h"
#include "stats/access_counts_file.h"

namespace recmill::bench {
namespace {

using placement::PlannerKind;
using placement::PlannerOptions;
using placement::Problem;
using placement::Rating;

constexpr int kDevices = 8;
constexpr int kExtras[] = {0, 1, 5};  // percent

std::string case_name(const char* what, const FrozenShape& shape, const Law& law, int extra) {
  return fmt::format("{}_{}_{}_{}pct", what, shape.name, law.name, extra);
}

PlannerOptions with_extra(int percent) {
  PlannerOptions options;
  options.extra_memory = percent / 100.0;
  return options;
}

void report(const std::string& name, const Rating& rating, const BenchSink& sink) {
  sink(degree_line(name, "degree_of_memory", rating.memory.degree()));
  sink(degree_line(name, "degree_of_lookups", rating.lookups.degree()));
  sink(degree_line(name, "degree_of_communication", rating.communication.degree()));
  sink(degree_line(name, "degree_of_pairs", rating.pair_bytes.degree()));
}

/// Whether what the cost model says of all devices together is what equations 2 and 3 give: every
/// sample looks one row of each table up, on one device.
Status check_rating(const std::string& name, const Problem& problem, const Rating& rating) {
  double expected = 0;  // of all devices
  for (const placement::PlacedTable& table : problem.tables)
    expected +=
        static_cast<double>(problem.samples * table.spec.dim * problem.devices()) * sizeof(float);
  double looked_up = 0, fetched = 0;
  for (const placement::DeviceRating& device : rating.devices) looked_up += device.looked_up;
  for (const double bytes : rating.fetched) fetched += bytes;
  if (std::abs(looked_up / expected - 1) > 1e-6 || fetched > expected)
    return Status::Failed(
        fmt::format("{}: {} bytes are looked up, of {}", name, looked_up, expected));
  return {};
}

Status run_balance(const FrozenShape& shape, const Law& law, const BenchOptions& options,
                   const BenchSink& sink) {
  std::vector<std::string> names, others;
  for (const int extra : kExtras) {
    names.push_back(case_name("balance", shape, law, extra));
    others.push_back(names.back() + "_other_seed");
  }
  if (!wants_any(options, names) && !wants_any(options, others)) return {};
  RECMILL_ASSIGN_OR_RETURN(AccessCounts counts, counts_for(shape, law, kPlannedSeed, options));
  Problem problem = problem_of(shape, std::move(counts), kDevices);
  std::vector<PlacementPlan> plans(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    if (!options.wants(names[i]) && !options.wants(others[i])) continue;
    RECMILL_ASSIGN_OR_RETURN(RatedPlan rated,
                             plan_and_rate(problem, PlannerKind::oper, with_extra(kExtras[i])));
    RECMILL_RETURN_IF_ERROR(check_rating(names[i], problem, rated.rating));
    plans[i] = std::move(rated.proposal.plan);
    if (options.wants(names[i])) report(names[i], rated.rating, sink);
  }
  if (!wants_any(options, others)) return {};
  problem.counts = {};
  RECMILL_ASSIGN_OR_RETURN(problem.counts, counts_for(shape, law, kOtherSeed, options));
  for (size_t i = 0; i < others.size(); ++i)
    if (options.wants(others[i])) report(others[i], rate(problem, plans[i]), sink);
  return {};
}

/// The peak of this process's resident memory is from now on that of what follows, beside what is
/// resident now.
void forget_peak() {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
}

double peak_mib() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line))
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  return 0;
}

Status write_drawn(const FrozenShape& shape, const Law& law, const std::string& path,
                   const BenchOptions& options) {
  ThreadPool pool(static_cast<int>(options.threads));
  RECMILL_ASSIGN_OR_RETURN(const AccessCounts counts,
                           counts_for(shape, law, kPlannedSeed, options));
  return stats::write_counts(counts, path, posix_files(), pool);
}

/// Reads the file, makes the plan and frees all but that.
Result<PlacementPlan> plan_from_file(const FrozenShape& shape, const std::string& path, int extra,
                                     ThreadPool& pool) {
  RECMILL_ASSIGN_OR_RETURN(AccessCounts counts,
                           stats::read_counts(path, shape.model(), posix_files(), pool));
  const Problem problem = problem_of(shape, std::move(counts), kDevices);
  RECMILL_ASSIGN_OR_RETURN(placement::Proposal proposal,
                           plan_placement(problem, PlannerKind::oper, with_extra(extra)));
  RECMILL_RETURN_IF_ERROR(check_answer(problem, proposal.plan));
  return std::move(proposal.plan);
}

Status run_plan_time(const FrozenShape& shape, const Law& law, const BenchOptions& options,
                     const BenchSink& sink) {
  constexpr int kPlanned[] = {0, 5};
  std::vector<std::string> names;
  for (const int extra : kPlanned) names.push_back(case_name("plan_time", shape, law, extra));
  if (!wants_any(options, names)) return {};
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/drawn.counts";
  RECMILL_RETURN_IF_ERROR(write_drawn(shape, law, path, options));
  ThreadPool pool(static_cast<int>(options.threads));
  for (size_t i = 0; i < names.size(); ++i) {
    if (!options.wants(names[i])) continue;
    std::vector<double> seconds;
    double peak = 0;
    for (int64_t repetition = 0; repetition < std::min<int64_t>(options.pairs, 3); ++repetition) {
      forget_peak();
      const Stopwatch watch;
      RECMILL_ASSIGN_OR_RETURN(const PlacementPlan plan,
                               plan_from_file(shape, path, kPlanned[i], pool));
      seconds.push_back(watch.seconds());
      peak = std::max(peak, peak_mib());
    }
    sink(line_of(names[i], "plan_time", median(seconds), "s"));
    sink(line_of(names[i], "peak_resident_memory", peak, "MiB"));
  }
  return {};
}

}  // namespace

Status run_balance_cases(const BenchOptions& options, const BenchSink& sink) {
  for (const FrozenShape& shape : frozen_shapes()) {
    for (const Law& law : kLaws) {
      RECMILL_RETURN_IF_ERROR(run_balance(shape, law, options, sink));
      RECMILL_RETURN_IF_ERROR(run_plan_time(shape, law, options, sink));
    }
  }
  return {};
}

}  // namespace recmill::bench
