// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/placement/placement_bench.h"

#include "cli/bench/placement/counting_cases.h"

namespace recmill::cli {

Status run_placement_bench(const BenchOptions& options, const BenchSink& sink) {
  return run_counting_cases(options, sink);
}

}  // namespace recmill::cli
