// SPDX-License-Identifier: Apache-2.0
// Golden samples are in testing/golden; RECMILL_RENEW_GOLDEN=1 build/tests/gpu_pool_source_test
// writes them anew.
#include "kernels/codegen/gpu/gpu_pool_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/files.h"
#include "device/gpu/cubin.h"
#include "device/gpu/nvrtc.h"
#include "kernels/codegen/gpu/gpu_distinct_source.h"
#include "kernels/codegen/testing/gpu_samples.h"
#include "kernels/embedding_pool/gpu_templates.h"

namespace recmill::kernels::codegen {
namespace {

/// The source without the device code, which is the same for all, and its name without its digest.
std::string own_text(const GpuSource& source, const std::string& name) {
  const size_t from = source.text.find("\n\n") + 2, to = source.text.find("namespace {\n");
  std::string text = source.text.substr(0, from) + "// (device code)\n\n" + source.text.substr(to);
  const std::string with_digest = source.entry.substr(0, name.size() + 17);
  for (size_t at = 0; (at = text.find(with_digest, at)) != std::string::npos;)
    text.replace(at, with_digest.size(), name);
  return text;
}

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(RECMILL_GOLDEN) + "/gpu_" + name + ".txt";
  if (std::getenv("RECMILL_RENEW_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_atomically(posix_files(), path, text).ok());
  }
  const auto golden = read_text(posix_files(), path);
  ASSERT_TRUE(golden.ok()) << golden.status().message();
  EXPECT_EQ(text, *golden);
}

TEST(GpuPoolSource, IsTheGoldenSampleOfEachTemplate) {
  std::set<std::string> used, all;
  for (const GpuSample& sample : gpu_samples()) {
    expect_golden(sample.name,
                  own_text(source_of(sample), sample.options.timed ? "timed_pool" : "fused_pool"));
    for (const PoolFunction& function : sample.functions) used.insert(function.schedule.of);
  }
  for (const GpuPoolTemplate& of : gpu_pool_templates()) all.insert(of.name);
  EXPECT_EQ(used, all);
}

TEST(GpuDistinctSource, IsTheGoldenSample) {
  for (const GpuSource& source : gpu_distinct_sources(RowKeys::wide, "the tests"))
    expect_golden("distinct_rows", own_text(source, "distinct_rows"));
}

TEST(GpuPoolSource, CompilesForGpusWithoutSpills) {
  const auto nvrtc = Nvrtc::load();
  ASSERT_TRUE(nvrtc.ok()) << nvrtc.status().message();
  for (const GpuSample& sample : gpu_samples()) {
    const GpuPoolSource source = source_of(sample);
    for (const char* architecture : {"sm_80", "sm_90"}) {
      const auto compiled = (*nvrtc)->compile(source.text, sample.name + ".cu", architecture);
      ASSERT_TRUE(compiled.ok()) << compiled.status().message();
      EXPECT_THAT(compiled->said, testing::Not(testing::HasSubstr("warning"))) << compiled->said;
      const auto kernels = *read_cubin(compiled->cubin);
      ASSERT_EQ(kernels.size(), 1u);
      EXPECT_EQ(kernels[0].name, source.entry);
      // Functions that are called keep their frames.
      EXPECT_EQ(kernels[0].stack > 0, sample.options.dispatch == Dispatch::pointers);
    }
  }
}

TEST(GpuPoolSource, RefusesWhatRowsDoNotAllow) {
  PoolFunction function{*parse_schedule("threads_per_sample lanes=4 at_once=1 threads=8"), 32};
  const auto refusal = [&] { return gpu_pool_sources({&function, 1}, {}).status().message(); };
  function.row_bytes = 132;
  EXPECT_EQ(refusal(),
            "schedule 'threads_per_sample lanes=4 at_once=1 threads=8' reads 4 weights at once, "
            "which rows of 32 every 132 bytes do not allow");
  function.row_bytes = 128;
  function.schedule = *parse_schedule("bags fetch=0");
  EXPECT_EQ(refusal(), "schedule 'bags fetch=0' has no template for GPUs");
}

TEST(GpuPoolSource, BeyondAHundredFunctionsThereAreSeveralKernels) {
  std::vector<PoolFunction> many;
  for (int64_t dim = 1; dim <= 250; ++dim)
    many.push_back({*parse_schedule("one_each unroll=1"), dim, dim * 4});
  const auto sources = *gpu_pool_sources(many, {});
  ASSERT_EQ(sources.size(), 3u);
  std::vector<PoolFunction> all;
  std::set<std::string> entries;
  for (const GpuPoolSource& source : sources) {
    all.insert(all.end(), source.functions.begin(), source.functions.end());
    entries.insert(source.entry);
    EXPECT_LE(source.functions.size(), 100u);
  }
  EXPECT_EQ(all, many);
  EXPECT_EQ(entries.size(), 3u);
}

}  // namespace
}  // namespace recmill::kernels::codegen
