// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/embedding/gpu_embedding_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "cli/bench/embedding/embedded_texts.h"
#include "cli/bench/embedding/gpu_workload.h"
#include "device/gpu/cuda_driver.h"
#include "device/gpu/emulated_driver.h"
#include "kernels/codegen/device_text.h"
#include "kernels/codegen/embedded_texts.h"

namespace recmill::cli {
namespace {

using ::testing::StartsWith;

class GpuEmbeddingBench : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  Pool pool_{2};
};

TEST_F(GpuEmbeddingBench, ChecksItsAnswerAndSaysThatItsTimesAreEmulated) {
  BenchOptions options;
  options.device = DeviceKind::emulated;
  options.scale = 2e-4;
  options.pairs = 1;
  std::vector<BenchLine> lines;
  const Status status =
      run_gpu_embedding_bench(options, [&](const BenchLine& line) { lines.push_back(line); });
  ASSERT_TRUE(status.ok()) << status.message();
  std::string cases;
  for (const BenchLine& line : lines) {
    EXPECT_EQ(line.device, "emulated");
    EXPECT_THAT(line.metric, StartsWith("emulated_"));
    EXPECT_GT(line.value, 0) << line.name;
    if (line.metric == "emulated_time_per_batch") cases += line.name + " ";
  }
  EXPECT_EQ(cases, "published_forward published_sgd published_adam ");
}

TEST_F(GpuEmbeddingBench, SaysThatThereIsNoDriver) {
  if (make_cuda_driver({}).ok()) GTEST_SKIP() << "there is one";
  BenchOptions options;
  options.device = DeviceKind::cuda;
  EXPECT_THAT(run_gpu_embedding_bench(options, [](const BenchLine&) {}).message(),
              StartsWith("--device cuda: "));
}

class Workload : public GpuEmbeddingBench {
 protected:
  // Compiles for the emulator, kernels that have the text `from` with another one in its place.
  CompileForGpu compile(std::string from = "", std::string to = "") {
    return [=, this](std::span<const kernels::codegen::GpuSource> of)
               -> Result<std::vector<kernels::codegen::GpuCode>> {
      std::vector<kernels::codegen::GpuSource> sources(of.begin(), of.end());
      for (kernels::codegen::GpuSource& source : sources) {
        const size_t at = from.empty() ? std::string::npos : source.text.find(from);
        if (at != std::string::npos) source.text.replace(at, from.size(), to);
      }
      kernels::codegen::LibraryCacheOptions options;
      options.folder = folder_.path();
      kernels::codegen::LibraryCache cache(options, posix_files());
      return emulated_code(sources, cache);
    };
  }
  std::string checked(OptimizerKind optimizer, const CompileForGpu& compile) {
    Gpu gpu(*make_emulated_driver({}), {});
    GpuEmbeddingShape shape{"small", 2, 500, 90, 20, 1.05, optimizer};
    auto workload = GpuEmbeddingWorkload::make(shape, compile, gpu, pool_);
    return workload.ok() ? (*workload)->check().message() : workload.status().message();
  }
};

TEST_F(Workload, IsWhatTheReferenceSays) {
  EXPECT_EQ(checked(OptimizerKind::sgd, compile()), "");
  EXPECT_EQ(checked(OptimizerKind::adam, compile()), "");
}

TEST_F(Workload, NamesARowThatIsNotTheReferences) {
  const std::string fill = "value_of(a.pattern, row, element)";
  EXPECT_THAT(checked(OptimizerKind::sgd, compile(fill, "value_of(a.pattern, row + 1, element)")),
              StartsWith("case small: a lookup of table t0, row "));
  EXPECT_THAT(checked(OptimizerKind::sgd,
                      compile("(is_next ? 0.0f : part[lane]) + values", "0.0f + values")),
              StartsWith("case small: an update of table t"));
}

TEST_F(Workload, CompilesForAGpu) {
  using namespace kernels::codegen;
  const GpuSource fill{
      device_text({kernel_types_text(), kernel_text(), fill_pattern_text(), fill_rows_text()}),
      "fill_rows"};
  auto cache = *CubinCache::open(folder_.path(), posix_files());
  const auto codes = cache.load({&fill, 1}, "sm_90", pool_);
  ASSERT_TRUE(codes.ok()) << codes.status().message();
  EXPECT_EQ(codes->front().spilled, 0);
}

}  // namespace
}  // namespace recmill::cli
