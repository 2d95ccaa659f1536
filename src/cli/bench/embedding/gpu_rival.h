// SPDX-License-Identifier: Apache-2.0
// Whom `bench embedding` is timed beside on a GPU: a system of bench/rivals/gpu_embedding_tables.py
// in a process of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "cli/bench/bench.h"
#include "cli/bench/rival.h"
#include "schema/row_optimizer_options.h"

namespace recmill::cli {

/// Those that have the optimizer.
std::vector<std::string> gpu_rivals_with(OptimizerKind optimizer);

/// One that fails is out from then on, and its status says why; whoever else is timed goes on.
class GpuRival {
 public:
  /// Starts `system` on the workload in `folder`, which outlives it; where the bench is not of a
  /// GPU, on the CPU, where it can be checked alone. Fails where there is no interpreter of rivals.
  static Result<GpuRival> start(const std::string& system, const std::string& folder,
                                const BenchOptions& options);

  /// Has it compare its lookups, update by batch 0 and write the sampled rows, which are compared
  /// with `expected` [sampled rows][dim].
  void check(std::span<const float> expected);

  /// What it takes for the batches by the request "forward" or "train", by the GPU's clock; 0 when
  /// it is out.
  double seconds(const std::string& request, std::span<const int64_t> order);

  const std::string& system() const { return system_; }
  /// OK as long as it takes part.
  const Status& status() const { return status_; }

 private:
  GpuRival(std::string system, std::string folder, Rival process)
      : system_(std::move(system)), folder_(std::move(folder)), process_(std::move(process)) {}
  /// Null when it is out.
  Json ask(const std::string& request, const Json& value);
  Status compare(std::span<const float> expected) const;
  void leave(const Status& why);

  std::string system_, folder_;
  std::optional<Rival> process_;
  Status status_;
};

}  // namespace recmill::cli
