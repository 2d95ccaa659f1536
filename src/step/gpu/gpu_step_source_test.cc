// SPDX-License-Identifier: Apache-2.0
#include "step/gpu/gpu_step_source.h"

#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "kernels/codegen/gpu/gpu_code.h"
#include "step/gpu/testing/gpu_step_samples.h"

namespace recmill::train {
namespace {

TEST(GpuStepSource, CompilesForGpusWithoutSpills) {
  const TemporaryFolder folder;
  ThreadPool pool(2);
  auto cache = kernels::codegen::CubinCache::open(folder.path(), posix_files());
  ASSERT_TRUE(cache.ok()) << cache.status().message();
  for (const GpuStepSample& sample : gpu_step_samples()) {
    for (const char* architecture : {"sm_80", "sm_90"}) {
      const auto codes =
          cache->load(gpu_step_sources(sample.options, "the tests"), architecture, pool);
      ASSERT_TRUE(codes.ok()) << codes.status().message();
      for (const auto& code : *codes) EXPECT_EQ(code.spilled, 0) << sample.name << architecture;
    }
  }
}

}  // namespace
}  // namespace recmill::train
