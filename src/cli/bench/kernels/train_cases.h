// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/bench/bench.h"
#include "train/resolved_run.h"

namespace recmill::cli {

/// Forward, backward and row-wise Adagrad of a workload's tables through LocalStore (prepare,
/// lookup, update: all that lies between ids and effect), against FBGEMM's TBE.
Status run_train_case(const std::string& name, const train::ResolvedRun& run,
                      const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::cli
