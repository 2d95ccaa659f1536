// SPDX-License-Identifier: Apache-2.0
#include "kernels/codegen/testing/test_code.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <thread>

#include "kernels/codegen/testing/kernel_folder.h"

namespace recmill::kernels::codegen {
namespace {

Result<std::vector<GpuCode>> compile_for_gpu(std::span<const GpuSource> sources,
                                             const std::string& folder) {
  static const int compute = recmill::testing::test_driver()->properties().compute;
  RECMILL_ASSIGN_OR_RETURN(auto cache, CubinCache::open(folder, posix_files()));
  ThreadPool pool(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  return cache.load(sources, "sm_" + std::to_string(compute), pool);
}

/// What takes the place of the program's own kernel: it, where nothing else was asked for.
void (*emulated_kernel(const GpuSource& source, void (*own)(const void*)))(const void*) {
  const char* const changed = std::getenv("RECMILL_KERNELS");
  if (changed == nullptr) return own;
  void* const library = dlopen(changed, RTLD_NOW | RTLD_LOCAL);
  RECMILL_CHECK(library != nullptr, dlerror());
  void* const entry = dlsym(library, (source.entry + "_emulated").c_str());
  return entry == nullptr ? own : reinterpret_cast<void (*)(const void*)>(entry);
}

}  // namespace

Result<std::vector<GpuCode>> compile_for_tests(std::span<const GpuSource> sources) {
  if (recmill::testing::on_cuda()) return compile_for_gpu(sources, kernel_folder());
  LibraryCacheOptions options;
  options.folder = kernel_folder();
  options.compiler.program = RECMILL_COMPILER;
  LibraryCache cache(options, posix_files());
  return emulated_code(sources, cache);
}

std::vector<KernelCode> test_codes(std::span<const GpuSource> sources,
                                   std::span<void (*const)(const void*)> emulated) {
  static std::map<std::string, GpuCode> compiled;  // by entry
  const bool on_cuda = recmill::testing::on_cuda();
  std::vector<GpuSource> missing;
  for (const GpuSource& source : sources)
    if (on_cuda && !compiled.contains(source.entry)) missing.push_back(source);
  if (!missing.empty()) {
    auto codes = compile_for_tests(missing);
    RECMILL_CHECK(codes.ok(), codes.status().message());
    for (size_t s = 0; s < missing.size(); ++s)
      compiled.emplace(missing[s].entry, std::move((*codes)[s]));
  }
  std::vector<KernelCode> codes;
  for (size_t s = 0; s < sources.size(); ++s)
    codes.push_back(
        on_cuda ? compiled.at(sources[s].entry).code
                : KernelCode{sources[s].entry, {}, emulated_kernel(sources[s], emulated[s])});
  return codes;
}

KernelCode test_code(const GpuSource& source, void (*emulated)(const void*)) {
  return test_codes({&source, 1}, {&emulated, 1}).front();
}

}  // namespace recmill::kernels::codegen
