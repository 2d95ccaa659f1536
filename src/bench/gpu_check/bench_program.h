// SPDX-License-Identifier: Apache-2.0
// Benchmarks of `make gpu-check`: what `recmill bench ... --device cuda --json` prints, from
// programs that need no more than their benchmarks do.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "bench/bench.h"

namespace recmill::bench {

/// The arguments: NAME [--device cuda] [--threads 2] [--pairs 7] [--scale 0] [--case NAME]
/// [--python python3] [--scripts bench/rivals] [--commit unknown] [--no-rivals]. Prints the lines
/// of the benchmark; returns the status of the process.
int run_bench_program(const std::vector<std::string>& arguments, const Bench& run);

/// Prints why, and returns the status of a process that ends so.
int fail_bench_program(const Status& status);

}  // namespace recmill::bench
