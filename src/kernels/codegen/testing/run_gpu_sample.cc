// SPDX-License-Identifier: Apache-2.0
// run_gpu_sample NAME LIBRARY: whether the fused kernel of a sample, compiled into a library, gives
// what the reference does. Exit status 0: it does; 1: it does not.
#include <dlfcn.h>

#include <cstdio>

#include "kernels/codegen/testing/gpu_pool_run.h"
#include "kernels/codegen/testing/gpu_samples.h"

namespace recmill::kernels::codegen {
namespace {

int run(const GpuSample& sample, const char* library) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  const GpuPoolSource source = source_of(sample);
  void* const entry = handle == nullptr ? nullptr : dlsym(handle, source.entry.c_str());
  if (entry == nullptr) {
    std::fprintf(stderr, "%s: %s\n", library, dlerror());
    return 2;
  }
  std::vector<emulation::Turns> all{{emulation::Order::forward}, {emulation::Order::reverse}};
  for (uint64_t seed = 1; seed <= 3; ++seed) all.push_back({emulation::Order::random, seed});
  for (const emulation::Turns& turns : all) {
    const std::string difference = difference_from_reference(
        source, reinterpret_cast<GpuPoolEntry>(entry), {300, sample.longest, turns.seed, turns});
    if (difference.empty()) continue;
    std::fprintf(stderr, "%s\n", difference.c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace recmill::kernels::codegen

int main(int count, char** arguments) {
  using namespace recmill::kernels::codegen;
  if (count == 3) {
    for (const GpuSample& sample : gpu_samples())
      if (sample.name == arguments[1]) return run(sample, arguments[2]);
  }
  std::fprintf(stderr, "usage: run_gpu_sample NAME LIBRARY\n");
  return 2;
}
