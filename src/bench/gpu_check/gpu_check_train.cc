// SPDX-License-Identifier: Apache-2.0
// The benchmarks of `make gpu-check` that need LibTorch, or what is built with it alone.
//
//   gpu_check_train cached|train [OPTION VALUE]...   (bench_program.h)
#include <cstdio>
#include <string>
#include <vector>

#include "bench/benches.h"
#include "bench/cached/gpu_cached_bench.h"
#include "bench/gpu_check/bench_program.h"

int main(int count, char** values) {
  using namespace recmill::bench;
  const std::vector<std::string> arguments(values + 1, values + count);
  if (!arguments.empty() && arguments[0] == "train")
    return run_bench_program(arguments, run_train_bench);
  if (!arguments.empty() && arguments[0] == "cached")
    return run_bench_program(arguments, run_gpu_cached_bench);
  std::fprintf(stderr, "usage: gpu_check_train cached|train [OPTION VALUE]...\n");
  return 2;
}
