// SPDX-License-Identifier: Apache-2.0
#include "bench/kernels/sides.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace recmill::bench {
namespace {

/// Each of the pairs asked for is so many repetitions (passes over the batches) as fit this time,
/// but no more than a few.
constexpr double kPairSeconds = 0.3;
constexpr int64_t kMostRepetitions = 8;

}  // namespace

KernelsBudget kernels_budget(const BenchOptions& options) {
  KernelsBudget budget;
  budget.pairs = options.pairs;
  if (!options.quick) return budget;
  budget.tuning_seconds = budget.separate_seconds = 8.0;
  budget.single_passes = 1;
  budget.patience_seconds = 3.0;
  budget.pairs = std::min<int64_t>(options.pairs, 3);
  budget.batches = 4;
  budget.baselines = false;
  return budget;
}

size_t Sides::add_ours(Contender run) {
  sides_.push_back({"", sides_.size()});
  contenders_.push_back(std::move(run));
  return sides_.size() - 1;
}

void Sides::add(const std::string& rival, Contender run, size_t ours) {
  sides_.push_back({rival, ours});
  contenders_.push_back(std::move(run));
}

void Sides::add_fused(const std::string& rival, kernels::FusedPool fused,
                      const PoolBatches& batches, ThreadPool& pool, size_t ours) {
  fused_.push_back(std::move(fused));
  add(rival, fused_contender(fused_.back(), batches, pool), ours);
}

Status Sides::run(int64_t batches, const KernelsBudget& budget, std::vector<pid_t> own) {
  std::vector<int64_t> each(batches);
  std::iota(each.begin(), each.end(), int64_t{0});
  RECMILL_RETURN_IF_ERROR(contenders_[0](each).status());
  RECMILL_ASSIGN_OR_RETURN(const double once, contenders_[0](each));
  const auto fit = std::max<int64_t>(1, std::llround(std::ceil(kPairSeconds / once)));
  AlternationOptions options;
  options.batches = batches;
  options.passes = 1;
  options.pairs = budget.pairs * std::min(fit, kMostRepetitions);
  options.mixed = true;
  options.patience_seconds = budget.patience_seconds;
  options.own = std::move(own);
  RECMILL_ASSIGN_OR_RETURN(turns_, take_turns(contenders_, options));
  return {};
}

BenchLine Sides::line(const std::string& name, size_t ours) const {
  BenchLine line;
  line.bench = "kernels";
  line.name = name;
  line.metric = "time_per_batch";
  line.value = seconds(ours) * 1e3;
  line.unit = "ms";
  line.foreign_load = turns_.foreign_load;
  return line;
}

BenchLine Sides::figure(const std::string& name, size_t ours, const std::string& metric,
                        double value, const std::string& unit) const {
  BenchLine made = line(name, ours);
  made.metric = metric;
  made.value = value;
  made.unit = unit;
  return made;
}

void Sides::report(const std::string& name, const BenchSink& sink) const {
  for (size_t s = 0; s < sides_.size(); ++s) {
    if (sides_[s].rival.empty()) continue;
    BenchLine line = this->line(name, sides_[s].ours);
    line.rival = sides_[s].rival;
    line.ratio = ratio_of(turns_.timing(sides_[s].ours, s));
    sink(line);
  }
}

}  // namespace recmill::bench
