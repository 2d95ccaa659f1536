// SPDX-License-Identifier: Apache-2.0
// Contenders that take turns in one run: ours, rivals, and other settings of our own executor.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/kernels/workload.h"

namespace recmill::bench {

/// What the runs of one bench have in common.
struct KernelsBudget {
  double tuning_seconds = 0.0;     // where there is no record; 0: as long as it takes
  double separate_seconds = 60.0;  // of tuning features alone
  int64_t single_passes = 3;       // best_single()
  double patience_seconds = 60.0;  // for a quiet machine
  int64_t batches = 8;             // of each seed, at least
  int64_t pairs = 7;
  bool baselines = true;  // other mappings and tunings too, not only other systems
};
KernelsBudget kernels_budget(const BenchOptions& options);

class Sides {
 public:
  /// A contender of our own that others are compared with; returns its place.
  size_t add_ours(Contender run);
  void add(const std::string& rival, Contender run, size_t ours);
  /// A setting of our executor, kept as long as the sides.
  void add_fused(const std::string& rival, kernels::FusedPool fused, const PoolBatches& batches,
                 ThreadPool& pool, size_t ours);

  /// All take turns over `batches` batches, as often as a good measurement needs. `own`: processes
  /// that are not foreign.
  Status run(int64_t batches, const KernelsBudget& budget, std::vector<pid_t> own);

  /// Seconds a batch, the median. `place`: as add_ours() said.
  double seconds(size_t place) const { return median(turns_.seconds[place]); }
  /// A line of case `name` for each rival.
  void report(const std::string& name, const BenchSink& sink) const;
  /// A line of ours alone, in ms; the caller may say more.
  BenchLine line(const std::string& name, size_t ours) const;
  /// The same with another figure than the time.
  BenchLine figure(const std::string& name, size_t ours, const std::string& metric, double value,
                   const std::string& unit) const;

 private:
  struct Side {
    std::string rival;  // empty: ours
    size_t ours = 0;
  };
  std::vector<Side> sides_;
  std::vector<Contender> contenders_;
  std::deque<kernels::FusedPool> fused_;
  Turns turns_;
};

}  // namespace recmill::bench
