// SPDX-License-Identifier: Apache-2.0
// Whom `bench embedding` is timed beside on a GPU: a system of bench/rivals/gpu_embedding_tables.py
// in a process of its own.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "bench/bench.h"
#include "bench/rival_in_run.h"
#include "schema/row_optimizer_options.h"

namespace recmill::bench {

/// Those that have the optimizer.
std::vector<std::string> gpu_rivals_with(OptimizerKind optimizer);

/// Its requests "forward" and "train" take the GPU's clock.
class GpuRival : public RivalInRun {
 public:
  /// Starts `system` on the workload in `folder`, which outlives it; where the bench is not of a
  /// GPU, on the CPU, where it can be checked alone. Fails where there is no interpreter of rivals.
  static Result<GpuRival> start(const std::string& system, const std::string& folder,
                                const BenchOptions& options);

  /// Has it compare its lookups, update by batch 0 and write the sampled rows, which are compared
  /// with `expected` [sampled rows][dim].
  void check(std::span<const float> expected, int limit_s = kRivalPatience_s);

 private:
  GpuRival(const std::string& system, std::string folder, Rival process)
      : RivalInRun(system, std::move(process)), folder_(std::move(folder)) {}
  Status compare(std::span<const float> expected) const;

  std::string folder_;
};

}  // namespace recmill::bench
