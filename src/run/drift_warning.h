// SPDX-License-Identifier: Apache-2.0
// Says when data has drifted from what a run's kernels were tuned on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/files.h"
#include "batch/sparse_batch.h"
#include "kernels/tune/drift.h"
#include "run/resolved_run.h"
#include "step/loop_hook.h"
#include "store/embedding_store.h"

namespace recmill::train {

/// "12.1 lookups a sample (deviation 3.0, 5 % of samples without), tuned for ...": the figures of
/// one drift, and its distance.
std::string figures_of(const kernels::tune::Drift& drift);

/// Where the run's kernels are tuned, looks at the batches that rank 0 trains (DriftWatch) and
/// warns, once, naming the feature that has drifted farthest and how many have. Proposes nothing.
class DriftWarning final : public LoopHook {
 public:
  /// `store` is the run's; `run` outlives this. `watches`: on rank 0.
  DriftWarning(const ResolvedRun& run, store::EmbeddingStore& store, Files& files, bool watches);

  Status see(const SparseBatch& batch, int64_t iteration) override;

 private:
  const ResolvedRun& run_;
  const std::string path_;                          // of the record
  std::optional<kernels::tune::DriftWatch> watch_;  // none: nothing is tuned, or not rank 0
};

}  // namespace recmill::train
