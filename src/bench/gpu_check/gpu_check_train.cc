// SPDX-License-Identifier: Apache-2.0
// The benchmark of `make gpu-check` that needs LibTorch.
//
//   gpu_check_train train [OPTION VALUE]...   (bench_program.h)
#include <cstdio>
#include <string>
#include <vector>

#include "bench/benches.h"
#include "bench/gpu_check/bench_program.h"

int main(int count, char** values) {
  const std::vector<std::string> arguments(values + 1, values + count);
  if (!arguments.empty() && arguments[0] == "train")
    return recmill::bench::run_bench_program(arguments, recmill::bench::run_train_bench);
  std::fprintf(stderr, "usage: gpu_check_train train [OPTION VALUE]...\n");
  return 2;
}
