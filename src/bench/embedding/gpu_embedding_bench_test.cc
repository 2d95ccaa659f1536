// SPDX-License-Identifier: Apache-2.0
#include "bench/embedding/gpu_embedding_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "base/temporary_folder.h"
#include "bench/embedding/embedded_texts.h"
#include "bench/embedding/gpu_rival.h"
#include "bench/embedding/gpu_workload.h"
#include "device/gpu/cuda_driver.h"
#include "device/gpu/emulated_driver.h"
#include "kernels/codegen/embedded_texts.h"
#include "kernels/codegen/gpu/device_text.h"

namespace recmill::bench {
namespace {

using ::testing::StartsWith;

class GpuEmbeddingBench : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  ThreadPool pool_{2};
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

// A script of a shell in place of the rivals': $1 is the folder, $2 the system.
class GpuRivals : public Workload {
 protected:
  GpuRival rival(const std::string& system, const std::string& script) {
    options_.python = "/bin/sh";
    options_.scripts = folder_.path();
    EXPECT_TRUE(
        write_atomically(posix_files(), folder_.path() + "/gpu_embedding_tables.py", script).ok());
    return *GpuRival::start(system, folder_.path(), options_);
  }
  BenchOptions options_;
  const std::array<float, 2> expected_{0.5f, 0.25f};
  // Rows 0.5 and 0.25, and times.
  const std::string answers_ =
      "read line; printf '\\000\\000\\000\\077\\000\\000\\200\\076' > $1/check.bin; echo '{}'\n"
      "while read line; do echo '{\"seconds\": 0.5}'; done\n";
};

TEST_F(GpuRivals, AreTimedWhenTheirRowsAreRight) {
  GpuRival right = rival("right", answers_);
  right.check(expected_);
  EXPECT_EQ(right.status().message(), "");
  EXPECT_EQ(right.seconds("forward", std::array<int64_t, 2>{0, 1}), 0.5);
}

TEST_F(GpuRivals, AreOutWithWrongRows) {
  GpuRival wrong = rival("wrong", answers_);
  wrong.check(std::array<float, 2>{0.5f, 0.26f});
  EXPECT_EQ(wrong.status().message(),
            "no times of wrong: element 1 of its sampled rows: 0.250000 in place of 0.260000");
  EXPECT_EQ(wrong.seconds("forward", std::array<int64_t, 1>{0}), 0);
}

TEST_F(GpuRivals, AreOutWithRowsMissing) {
  GpuRival few = rival("few", answers_);
  few.check(std::array<float, 3>{0.5f, 0.25f, 0});
  EXPECT_EQ(few.status().message(), "no times of few: its answer has another size");
}

TEST_F(GpuRivals, AreOutWhenTheyFailAtTheirFirstRequestOrALaterOne) {
  GpuRival missing = rival("missing", "read line; echo '{\"error\": \"no module\"}'\n");
  missing.check(expected_);
  EXPECT_THAT(missing.status().message(), StartsWith("no times of missing: rival: \"no module\""));
  GpuRival ends = rival("ends", "read line; exit 1\n");
  EXPECT_EQ(ends.seconds("train", std::array<int64_t, 1>{0}), 0);
  EXPECT_THAT(ends.status().message(), StartsWith("no times of ends: rival gave no answer: "));
}

// Triton by its interpreter. 20 floats are no power of two, as which Triton has its tiles.
TEST_F(GpuRivals, GiveTheReferencesRowsOnTheCpu) {
  options_.python = RECMILL_RIVALS_PYTHON;
  options_.scripts = RECMILL_RIVALS_SCRIPTS;
  if (access(RECMILL_RIVALS_PYTHON, X_OK) != 0) GTEST_SKIP() << "'make rivals' was not run";
  for (const auto& [dim, optimizer] :
       {std::pair{20, OptimizerKind::sgd}, {128, OptimizerKind::sgd}, {20, OptimizerKind::adam}}) {
    Gpu gpu(*make_emulated_driver({}), {});
    const GpuEmbeddingShape shape{"small", 2, 500, 90, dim, 1.05, optimizer};
    const auto workload = *GpuEmbeddingWorkload::make(shape, compile(), gpu, pool_);
    ASSERT_TRUE(workload->check().ok());
    ASSERT_TRUE(workload->write(posix_files(), folder_.path()).ok());
    for (const std::string& system : gpu_rivals_with(optimizer)) {
      GpuRival rival = *GpuRival::start(system, folder_.path(), options_);
      rival.check(workload->expected_rows());
      EXPECT_EQ(rival.status().message(), "");
    }
  }
}

TEST_F(GpuRivals, AreOutWithoutAnAnswerInTime) {
  GpuRival slow = rival("slow", "read line; exec sleep 60\n");
  slow.check(expected_, 1);
  EXPECT_THAT(slow.status().message(),
              StartsWith("no times of slow: rival gave no answer in 1 s: "));
}

TEST_F(GpuRivals, NeedAnInterpreter) {
  options_.python = "/nowhere/python";
  EXPECT_THAT(GpuRival::start("triton", folder_.path(), options_).status().message(),
              StartsWith("no rivals: run 'make rivals' first: "));
}

}  // namespace
}  // namespace recmill::bench
