// SPDX-License-Identifier: Apache-2.0
#include "table/gpu/gpu_update_source.h"

#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "kernels/codegen/gpu/gpu_code.h"
#include "table/testing/gpu_update_samples.h"

namespace recmill::table {
namespace {

using kernels::codegen::GpuSource;

TEST(GpuUpdateSource, CompilesForGpusWithoutSpills) {
  const TemporaryFolder folder;
  ThreadPool pool(2);
  auto cache = kernels::codegen::CubinCache::open(folder.path(), posix_files());
  ASSERT_TRUE(cache.ok()) << cache.status().message();
  std::vector<GpuUpdateFunction> functions[2];  // by whether there are many slices
  for (const TableSpec& spec : gpu_update_specs()) {
    if (spec.precision != RowPrecision::float32 && spec.dim == 17) continue;  // it takes long
    const GpuUpdateFunction function = gpu_update_function(spec);
    functions[function.levels > 4 ? 1 : 0].push_back(function);
  }
  std::vector<GpuSource> sources;
  for (const auto& of : functions)
    for (const GpuUpdateSource& source : gpu_update_sources(of, "the tests", 8))
      sources.push_back(source);
  ASSERT_EQ(sources.size(), 6u);
  const auto check = [&](std::span<const GpuSource> some, const char* architecture) {
    const auto codes = cache->load(some, architecture, pool);
    ASSERT_TRUE(codes.ok()) << codes.status().message();
    for (const auto& code : *codes) {
      EXPECT_EQ(code.spilled, 0) << architecture << " " << code.resources.registers;
      EXPECT_EQ(code.resources.stack, 0);
    }
  };
  check(sources, "sm_90");
  check(std::span(sources).last(1), "sm_80");
}

// What a compiler computes before the loop over rows, of every function, it keeps in registers.
TEST(GpuUpdateSource, ManyDimensionsOfOneKernelLeaveEachItsRegisters) {
  const TemporaryFolder folder;
  ThreadPool pool(2);
  auto cache = kernels::codegen::CubinCache::open(folder.path(), posix_files());
  ASSERT_TRUE(cache.ok()) << cache.status().message();
  std::vector<GpuSource> sources;
  for (const OptimizerKind kind : {OptimizerKind::rowwise_adagrad, OptimizerKind::adam}) {
    std::vector<GpuUpdateFunction> functions;
    for (const int64_t dim : {4, 8, 16, 32, 64, 128}) {
      TableSpec spec = gpu_update_specs().front();
      spec.dim = dim;
      spec.optimizer.kind = kind;
      functions.push_back(gpu_update_function(spec));
    }
    const auto made = gpu_update_sources(functions, "the tests");
    ASSERT_EQ(made.size(), 1u);
    sources.push_back(made.front());
  }
  const auto codes = cache->load(sources, "sm_90", pool);
  ASSERT_TRUE(codes.ok()) << codes.status().message();
  for (const auto& code : *codes) {
    EXPECT_EQ(code.spilled, 0) << code.resources.registers;
    EXPECT_LE(code.resources.registers, 112);  // 128, and spills, otherwise
  }
}

TEST(GpuUpdateSource, AlikeTablesShareAFunction) {
  GpuUpdateFunction a, b;
  a.dim = 8;
  b.dim = 16;
  const std::vector<GpuUpdateFunction> wanted{b, a, b, a};
  const auto sources = gpu_update_sources(wanted, "the tests");
  ASSERT_EQ(sources.size(), 1u);
  EXPECT_EQ(sources[0].functions, (std::vector<GpuUpdateFunction>{a, b}));
}

}  // namespace
}  // namespace recmill::table
