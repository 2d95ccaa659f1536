// SPDX-License-Identifier: Apache-2.0
// Says when data has drifted from what a run's kernels were tuned on.
#pragma once

#include <functional>
#include <string>

#include "base/files.h"
#include "batch/sparse_batch.h"
#include "kernels/tune/drift.h"
#include "run/resolved_run.h"
#include "store/embedding_store.h"

namespace recmill::train {

/// "12.1 lookups a sample (deviation 3.0, 5 % of samples without), tuned for ...": the figures of
/// one drift, and its distance.
std::string figures_of(const kernels::tune::Drift& drift);

/// Where the run's kernels are tuned, what looks at the batches that are trained (DriftWatch) and
/// warns, once, naming the feature that has drifted farthest and how many have. Else empty. `store`
/// is the run's; `run` outlives what is returned.
std::function<void(const SparseBatch&)> drift_warning(const ResolvedRun& run,
                                                      store::EmbeddingStore& store, Files& files);

}  // namespace recmill::train
