// SPDX-License-Identifier: Apache-2.0
// FBGEMM and PyTorch on a workload's features, in one process (bench/rivals/embedding_features.py).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "bench/bench.h"
#include "bench/kernels/workload.h"
#include "bench/rival.h"

namespace recmill::bench {

/// Fully connected layers after the rows, ReLU between them and a sigmoid at the end.
struct RivalLayers {
  std::vector<int64_t> units;         // of each layer
  std::span<const float> parameters;  // weight [units][inputs] and bias of each
};

struct FeatureRivalsRequest {
  bool inference = false;                // FBGEMM's inference TBE too
  RivalLayers layers = {};               // not empty: systems end in "_mlp"
  std::span<const float> gradient = {};  // [samples of the largest batch][columns]: training
};

class FeatureRivals {
 public:
  /// Starts the process with the test batches of `workload`, whose rows it makes by itself.
  static Result<FeatureRivals> start(const KernelWorkload& workload, const BenchOptions& options,
                                     const FeatureRivalsRequest& request);

  /// What `system` writes for a test batch, [samples][columns], after training on `train`, which
  /// only a process with a gradient can.
  Result<std::vector<float>> lookup(const std::string& system, int64_t batch,
                                    std::span<const int64_t> train = {});
  /// Runs test batches by `system` at so many threads. Outlived by the rivals.
  Contender contender(const std::string& system, int threads);
  /// Seconds that the operations of a pass over all batches take, a batch, without what lies
  /// between them.
  Result<double> operation_seconds(const std::string& system, int threads);
  pid_t pid() const { return rival_.pid(); }

 private:
  FeatureRivals(std::unique_ptr<TemporaryFolder> folder, Rival rival)
      : folder_(std::move(folder)), rival_(std::move(rival)) {}
  std::unique_ptr<TemporaryFolder> folder_;
  Rival rival_;
};

/// Fails, naming the batch, where our output of the batch, pooled just before, and the rival's
/// differ by more than 1e-5 of the largest value: sums in float32 of up to some thousand rows,
/// which the two sides add in different orders.
Status check_outputs(const PoolBatches& ours, int64_t batch, std::span<const float> rival);

}  // namespace recmill::bench
