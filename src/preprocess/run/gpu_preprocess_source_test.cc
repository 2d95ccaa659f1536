// SPDX-License-Identifier: Apache-2.0
#include "preprocess/run/gpu_preprocess_source.h"

#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "kernels/codegen/gpu/gpu_code.h"

namespace recmill::preprocess {
namespace {

TEST(GpuPreprocessSource, compiles_for_gpus_without_spills) {
  const TemporaryFolder folder;
  ThreadPool pool(1);
  auto cache = kernels::codegen::CubinCache::open(folder.path(), posix_files());
  ASSERT_TRUE(cache.ok()) << cache.status().message();
  const auto source = gpu_preprocess_source("the tests");
  for (const char* architecture : {"sm_80", "sm_90"}) {
    const auto codes = cache->load({&source, 1}, architecture, pool);
    ASSERT_TRUE(codes.ok()) << codes.status().message();
    EXPECT_EQ(codes->front().spilled, 0) << architecture;
    EXPECT_EQ(codes->front().resources.stack, 0) << architecture;
  }
}

}  // namespace
}  // namespace recmill::preprocess
