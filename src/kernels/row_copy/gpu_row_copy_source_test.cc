// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>

#include "base/temporary_folder.h"
#include "kernels/row_copy/gpu_record_copier.h"
#include "kernels/row_copy/gpu_row_copier.h"

namespace recmill::kernels {
namespace {

TEST(GpuRowCopySource, CompilesForGpusWithoutSpills) {
  const TemporaryFolder folder;
  ThreadPool pool(1);
  auto cache = codegen::CubinCache::open(folder.path(), posix_files());
  ASSERT_TRUE(cache.ok()) << cache.status().message();
  const std::array sources{gpu_row_copy_source("the tests"), gpu_record_copy_source("the tests")};
  for (const char* architecture : {"sm_80", "sm_90"}) {
    const auto codes = cache->load(sources, architecture, pool);
    ASSERT_TRUE(codes.ok()) << codes.status().message();
    for (const codegen::GpuCode& code : *codes) {
      EXPECT_EQ(code.spilled, 0) << architecture;
      EXPECT_EQ(code.resources.stack, 0) << architecture;
    }
  }
}

}  // namespace
}  // namespace recmill::kernels
