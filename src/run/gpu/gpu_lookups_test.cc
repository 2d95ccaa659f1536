// SPDX-License-Identifier: Apache-2.0
#include "run/gpu/gpu_lookups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "run/gpu/gpu_run.h"
#include "run/testing/bags_run.h"

namespace recmill::train {
namespace {

TEST(GpuLookups, DoNotTakeMoreMemoryThanTheRunCountsOn) {
  RunOptions options = bags_run(100);
  options.device = DeviceKind::emulated;
  options.gpu.memory_gib = 1e-6;
  const auto run = resolve_run(options, posix_files());
  ASSERT_TRUE(run.ok()) << run.status().message();
  ThreadPool pool(1);
  const auto lookups = GpuLookups::make(*run, {.least = 1, .most = 1}, pool, posix_files());
  ASSERT_FALSE(lookups.ok());
  EXPECT_THAT(lookups.status().message(),
              ::testing::StartsWith("gpu.rows = \"device\": the run takes 0.3 MiB of the GPU's "
                                    "memory, of which gpu.memory_gib leaves it 0.0 MiB; largest: "
                                    "answers of candidates 0.3 MiB, table "));
}

ResolvedRun emulated_run(RunOptions options) {
  options.device = DeviceKind::emulated;
  auto run = resolve_run(options, posix_files());
  EXPECT_TRUE(run.ok()) << run.status().message();
  return *std::move(run);
}

TEST(OpenGpu, HasTheOptionsOfTheRun) {
  RunOptions options;
  options.device = DeviceKind::emulated;
  options.gpu.synchronous = options.gpu.check_nan = true;
  options.gpu.kernel_seconds = 7.0;
  const auto gpu = open_gpu(options);
  ASSERT_TRUE(gpu.ok()) << gpu.status().message();
  EXPECT_TRUE((*gpu)->options().synchronous);
  EXPECT_TRUE((*gpu)->options().check_nan);
  EXPECT_EQ((*gpu)->options().kernel_seconds, 7.0);
}

int64_t answers_of(const store::GpuLedger& need) {
  int64_t bytes = 0;
  for (const MemoryItem& item : need.device.items)
    if (item.what.starts_with("answers of candidates")) bytes += item.bytes;
  return bytes;
}

TEST(GpuLookups, AnswersOfCandidatesAreThoseOfTheLargestBatch) {
  RunOptions options = bags_run(100);
  const std::vector<store::RowsAt> host(100, GpuMemory::host);
  const auto answers = [&] { return answers_of(tuning_need(emulated_run(options), {}, host)); };
  const int64_t of_64 = answers();
  options.train.batch_size = 128;
  EXPECT_EQ(answers(), 2 * of_64);
  options.tune.batch_sizes = {8, 1, 64, 2};
  EXPECT_EQ(answers(), of_64);
}

TEST(GpuLookups, RowsLeaveRoomForAnswersOfCandidates) {
  RunOptions options = bags_run(100);
  options.gpu.rows = GpuRowsIn::fit;
  options.gpu.memory_gib = 1.0;
  const TemporaryFolder folder;
  options.kernels.cache = folder.path();
  ThreadPool pool(1);
  const BatchesRequest request{.least = 1, .most = 1};
  const auto bytes_of_rows = [&] {
    const auto lookups = GpuLookups::make(emulated_run(options), request, pool, posix_files());
    EXPECT_TRUE(lookups.ok()) << lookups.status().message();
    Gpu& gpu = (*lookups)->gpu();
    return gpu.properties().memory - gpu.driver().free_bytes();
  };
  const int64_t rows = bytes_of_rows();
  EXPECT_GT(rows, 0);
  const ResolvedRun run = emulated_run(options);
  const std::vector<store::RowsAt> host(run.spec.tables.size(), GpuMemory::host);
  const auto besides = tuning_need(run, request, host);
  const auto gib = [](int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); };
  options.gpu.memory_gib = gib(besides.device.total(0) + rows);
  EXPECT_EQ(bytes_of_rows(), rows);
  options.gpu.memory_gib = gib(besides.device.total(0));
  EXPECT_EQ(bytes_of_rows(), 0);
}

}  // namespace
}  // namespace recmill::train
