// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "kernels/near_rows/gpu_near_rows.h"

namespace recmill::kernels {
namespace {

TEST(GpuNearRowsSource, CompilesForGpusWithoutSpills) {
  const TemporaryFolder folder;
  ThreadPool pool(1);
  auto cache = codegen::CubinCache::open(folder.path(), posix_files());
  ASSERT_TRUE(cache.ok()) << cache.status().message();
  for (const char* architecture : {"sm_80", "sm_90"}) {
    const auto codes = cache->load(gpu_near_rows_sources("the tests"), architecture, pool);
    ASSERT_TRUE(codes.ok()) << codes.status().message();
    for (const codegen::GpuCode& code : *codes) {
      EXPECT_EQ(code.spilled, 0) << architecture;
      EXPECT_EQ(code.resources.stack, 0) << architecture;
    }
  }
}

}  // namespace
}  // namespace recmill::kernels
