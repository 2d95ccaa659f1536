// SPDX-License-Identifier: Apache-2.0
#include "kernels/codegen/testing/test_code.h"

#include <map>

#include "base/temporary_folder.h"

namespace recmill::kernels::codegen {
namespace {

Result<std::vector<GpuCode>> compile_for_gpu(std::span<const GpuSource> sources,
                                             const std::string& folder) {
  static const int compute = recmill::testing::test_driver()->properties().compute;
  RECMILL_ASSIGN_OR_RETURN(auto cache, CubinCache::open(folder, posix_files()));
  Pool pool(4);
  return cache.load(sources, "sm_" + std::to_string(compute), pool);
}

}  // namespace

Result<std::vector<GpuCode>> compile_for_tests(std::span<const GpuSource> sources) {
  static const TemporaryFolder folder;
  if (recmill::testing::on_cuda()) return compile_for_gpu(sources, folder.path());
  LibraryCacheOptions options;
  options.folder = folder.path();
  options.compiler.program = RECMILL_COMPILER;
  LibraryCache cache(options, posix_files());
  return emulated_code(sources, cache);
}

KernelCode test_code(const GpuSource& source, void (*emulated)(const void*)) {
  if (!recmill::testing::on_cuda()) return {source.entry, {}, emulated};
  static std::map<std::string, GpuCode> compiled;  // by entry
  if (!compiled.contains(source.entry)) {
    auto codes = compile_for_tests({&source, 1});
    RECMILL_CHECK(codes.ok(), codes.status().message());
    compiled.emplace(source.entry, std::move(codes->front()));
  }
  return compiled.at(source.entry).code;
}

}  // namespace recmill::kernels::codegen
