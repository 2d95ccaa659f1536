// SPDX-License-Identifier: Apache-2.0
// run_gpu_update_sample all_ways LIBRARY: whether the kernel of gpu_update_sample_of_all_ways(),
// compiled into a library, gives what the reference does. Exit status 0: it does; 1: it does not.
#include <dlfcn.h>

#include <cstdio>
#include <string>
#include <utility>

#include "table/testing/gpu_update_run.h"

namespace recmill::table {
namespace {

int run(void* library) {
  const GpuUpdateSource source = gpu_update_sample_of_all_ways();
  void* const entry =
      library == nullptr ? nullptr : dlsym(library, (source.entry + "_emulated").c_str());
  if (entry == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  const KernelCode code{source.entry, {}, reinterpret_cast<void (*)(const void*)>(entry)};
  const emulation::Turns orders[] = {
      {emulation::Order::forward}, {emulation::Order::reverse}, {emulation::Order::random, 5}};
  std::vector<GpuUpdateCase> cases;
  for (int slices = 1; slices <= 16; slices *= 2)
    cases.emplace_back(gpu_update_spec_of_all_ways(), slices, cases.size());
  for (int64_t iteration = 0; iteration < 3; ++iteration) {
    const Status status =
        update_on_gpu(cases, {&source, 1}, {&code, 1}, {iteration, 0.5}, orders[iteration]);
    bool is_same = status.ok();
    for (const GpuUpdateCase& of : cases) is_same = is_same && of.is_same();
    if (is_same) continue;
    std::fprintf(stderr, "iteration %ld: other rows; %s\n", iteration, status.message().c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace recmill::table

int main(int count, char** arguments) {
  if (count == 3 && arguments[1] == std::string("all_ways"))
    return recmill::table::run(dlopen(arguments[2], RTLD_NOW | RTLD_LOCAL));
  std::fprintf(stderr, "usage: run_gpu_update_sample all_ways LIBRARY\n");
  return 2;
}
