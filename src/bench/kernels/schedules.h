// SPDX-License-Identifier: Apache-2.0
// The schedules that `bench kernels` compares: the tuned ones, the best that all features can
// share, and those tuned feature by feature.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/kernels/workload.h"
#include "run/chosen_kernels.h"

namespace recmill::bench {

/// The schedules that are in every list, in the order of the first.
std::vector<kernels::Schedule> in_all(std::span<const std::vector<kernels::Schedule>> lists);

/// Places of the `count` least values, ascending by value; the first among equals.
std::vector<size_t> least(std::span<const double> values, size_t count);

struct SingleSchedule {
  kernels::Schedule schedule;
  int64_t tile = 0;
  kernels::FusedPool fused;
};

struct SingleRequest {
  int64_t passes = 3;  // how often each is timed before the best are timed against each other
  /// Leaves some out. Null: none.
  std::function<bool(const kernels::Schedule&)> admits = nullptr;
  /// Features whose lookups do not cover their table get the default schedule in place of one that
  /// stages it, as the tuned ones do: two schedules, chosen by the batch.
  bool or_default = false;
};

/// The schedule that makes the workload's tune batches fastest when every feature has it, over all
/// that are valid for every feature and all tiles.
Result<SingleSchedule> best_single(const KernelWorkload& workload, const SingleRequest& request);

struct TunedKernels {
  kernels::tune::TuningRecord record;
  store::StoreKernels kernels;
};

/// What tuning in this run finds, with this budget (0: as long as it takes).
Result<TunedKernels> tune_here(const train::ResolvedRun& run, double budget_seconds, Files& files);

/// The run's tuning record where there is one that is good here, else what tuning in this run
/// finds; says which. With `budget_seconds` (0: as long as it takes) lookups alone are tuned, on
/// few batches.
Result<TunedKernels> tuned_kernels(const train::ResolvedRun& run, double budget_seconds,
                                   Files& files);

/// The first straw man of RecFlex (section II-C): each feature's candidates timed alone on the
/// machine, the winners fused.
Result<TunedKernels> separate_kernels(const KernelWorkload& workload, double budget_seconds);

}  // namespace recmill::bench
