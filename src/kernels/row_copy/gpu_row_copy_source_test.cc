// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "kernels/row_copy/gpu_row_copier.h"

namespace recmill::kernels {
namespace {

TEST(GpuRowCopySource, CompilesForGpusWithoutSpills) {
  const TemporaryFolder folder;
  ThreadPool pool(1);
  auto cache = codegen::CubinCache::open(folder.path(), posix_files());
  ASSERT_TRUE(cache.ok()) << cache.status().message();
  const auto source = gpu_row_copy_source("the tests");
  for (const char* architecture : {"sm_80", "sm_90"}) {
    const auto codes = cache->load({&source, 1}, architecture, pool);
    ASSERT_TRUE(codes.ok()) << codes.status().message();
    EXPECT_EQ(codes->at(0).spilled, 0) << architecture;
    EXPECT_EQ(codes->at(0).resources.stack, 0) << architecture;
  }
}

}  // namespace
}  // namespace recmill::kernels
