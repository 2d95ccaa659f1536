// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "bench/bench.h"
#include "run/resolved_run.h"

namespace recmill::bench {

/// Forward, backward and row-wise Adagrad of a workload's tables through LocalStore (prepare,
/// lookup, update: all that lies between ids and effect), against FBGEMM's TBE.
Status run_train_case(const std::string& name, const train::ResolvedRun& run,
                      const BenchOptions& options, const BenchSink& sink);

/// Lookups of a batch in which all features are empty: prepare() and lookup() of LocalStore.
Status run_empty_case(const std::string& name, const train::ResolvedRun& run,
                      const BenchOptions& options, const BenchSink& sink);

/// Ten thousand features of dimension 8 without an id, batches of 128 samples. Made from the
/// settings of any workload.
train::RunOptions empty_features(train::RunOptions settings);

}  // namespace recmill::bench
