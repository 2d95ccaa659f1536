// SPDX-License-Identifier: Apache-2.0
#include "table/gpu_update_source.h"

#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "kernels/codegen/gpu_code.h"
#include "table/testing/gpu_update_samples.h"

namespace recmill::table {
namespace {

using kernels::codegen::GpuSource;

TEST(GpuUpdateSource, CompilesForGpusWithoutSpills) {
  const TemporaryFolder folder;
  Pool pool(2);
  auto cache = kernels::codegen::CubinCache::open(folder.path(), posix_files());
  ASSERT_TRUE(cache.ok()) << cache.status().message();
  std::vector<GpuUpdateFunction> functions;
  for (const TableSpec& spec : gpu_update_specs()) functions.push_back(gpu_update_function(spec));
  std::vector<GpuSource> sources;
  for (const GpuUpdateSource& source : gpu_update_sources(functions, "the tests", 25))
    sources.push_back(source);
  EXPECT_EQ(sources.size(), 3u);
  for (const char* architecture : {"sm_80", "sm_90"}) {
    const auto codes = cache->load(sources, architecture, pool);
    ASSERT_TRUE(codes.ok()) << codes.status().message();
    for (const auto& code : *codes) {
      EXPECT_EQ(code.spilled, 0);
      EXPECT_EQ(code.resources.stack, 0);
    }
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
