// SPDX-License-Identifier: Apache-2.0
// run_gpu_sample NAME LIBRARY: whether the kernels of a sample, compiled into a library, give what
// the reference does. Exit status 0: it does; 1: it does not.
#include <dlfcn.h>

#include <cstdio>

#include "kernels/codegen/gpu/gpu_distinct_source.h"
#include "kernels/codegen/testing/gpu_distinct_run.h"
#include "kernels/codegen/testing/gpu_pool_run.h"
#include "kernels/codegen/testing/gpu_samples.h"

namespace recmill::kernels::codegen {
namespace {

void* symbol_of(void* library, const std::string& name) {
  void* const symbol = library == nullptr ? nullptr : dlsym(library, name.c_str());
  if (symbol == nullptr) std::fprintf(stderr, "%s\n", dlerror());
  return symbol;
}

std::vector<emulation::Turns> all_turns() {
  std::vector<emulation::Turns> all{{emulation::Order::forward}, {emulation::Order::reverse}};
  for (uint64_t seed = 1; seed <= 3; ++seed) all.push_back({emulation::Order::random, seed});
  return all;
}

int status_of(const std::string& difference) {
  if (!difference.empty()) std::fprintf(stderr, "%s\n", difference.c_str());
  return difference.empty() ? 0 : 1;
}

int run(const GpuSample& sample, void* library) {
  const GpuPoolSource source = source_of(sample);
  void* const entry = symbol_of(library, source.entry + "_emulated");
  if (entry == nullptr) return 2;
  for (const emulation::Turns& turns : all_turns()) {
    const int status = status_of(
        difference_from_reference(source, reinterpret_cast<EmulatedEntry>(entry),
                                  {300, sample.longest, turns.seed, sample.options.timed, turns}));
    if (status != 0) return status;
  }
  return 0;
}

int run_distinct(RowKeys keys, void* library) {
  std::vector<KernelCode> kernels;
  for (const GpuSource& source : gpu_distinct_sources(keys, "the tests")) {
    void* const entry = symbol_of(library, source.entry + "_emulated");
    if (entry == nullptr) return 2;
    kernels.push_back({source.entry, {}, reinterpret_cast<void (*)(const void*)>(entry)});
  }
  for (const emulation::Turns& turns : all_turns()) {
    GpuDistinctRun run(kernels, keys, turns);
    const int status =
        status_of(run.difference(random_distinct_cases(keys, 300, 5, turns.seed), 0, 4));
    if (status != 0) return status;
  }
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    GpuDistinctRun run(kernels, keys, {emulation::Order::random, seed});
    const int status = status_of(run.difference(std::vector{distinct_case_of_two_warps()}, 0, 1));
    if (status != 0) return status;
  }
  return 0;
}

}  // namespace
}  // namespace recmill::kernels::codegen

int main(int count, char** arguments) {
  using namespace recmill::kernels::codegen;
  if (count == 3) {
    const std::string name = arguments[1];
    void* const library = dlopen(arguments[2], RTLD_NOW | RTLD_LOCAL);
    for (const GpuSample& sample : gpu_samples())
      if (sample.name == name) return run(sample, library);
    using recmill::kernels::RowKeys;
    if (name == "distinct_rows_narrow") return run_distinct(RowKeys::narrow, library);
    if (name == "distinct_rows_wide") return run_distinct(RowKeys::wide, library);
  }
  std::fprintf(stderr, "usage: run_gpu_sample NAME LIBRARY\n");
  return 2;
}
