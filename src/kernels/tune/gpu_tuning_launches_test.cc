// SPDX-License-Identifier: Apache-2.0
// How tuning launches kernels on a GPU: all candidates of a feature at once, on a GPU that is full,
// and with as many blocks of an SM as it says (RecFlex, section IV-A).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "device/gpu/emulated_driver.h"
#include "kernels/codegen/testing/recording_driver.h"
#include "kernels/codegen/testing/test_code.h"
#include "kernels/testing/random_bags.h"
#include "kernels/tune/gpu_pool_subject.h"

namespace recmill::kernels::tune {
namespace {

using codegen::GpuCode;
using codegen::GpuSource;
using recmill::testing::GpuCall;
using recmill::testing::RecordingDriver;

constexpr int64_t kRows = 50, kDim = 2, kSamples = 7;
constexpr int kSms = 3;

/// A feature of two on a GPU that the CPU plays, whose kernels take what those of a real one may.
class GpuTuningLaunches : public ::testing::Test {
 protected:
  GpuTuningLaunches()
      : gpu_(std::make_unique<RecordingDriver>(
                 *make_emulated_driver({.sms = kSms, .usage = &usage_}), calls_),
             {}),
        values_(random_floats(kRows * kDim, 1)),
        rows_(*gpu_.allocate(values_.size() * sizeof(float), "table")) {
    auto stream = *gpu_.open_stream();
    auto staged = *gpu_.allocate_pinned(rows_.size(), "table");
    std::ranges::copy(values_, staged.as<float>().begin());
    RECMILL_CHECK(stream.to_device(rows_, staged, staged.size()).ok());
    RECMILL_CHECK(stream.synchronize().ok());
    batches_.resize(2);
    for (SparseBatch& batch : batches_) {
      batch.samples = kSamples;
      batch.features = {random_bags({kSamples, 5, kRows}, 2)};
    }
    GpuPoolSubjectOptions options;
    options.compile = [this](std::span<const GpuSource> sources) { return compile(sources); };
    subject_ = *GpuPoolSubject::make(
        gpu_, {{RowStorage::of(values_.data(), kRows, kDim), rows_.address<u8>()}}, batches_,
        options, pool_);
  }

  Result<std::vector<GpuCode>> compile(std::span<const GpuSource> sources) {
    for (const GpuSource& source : sources) asked_for_.insert(source.text);
    RECMILL_ASSIGN_OR_RETURN(auto codes, codegen::compile_for_tests(sources));
    for (GpuCode& code : codes) code.resources = resources_;
    return codes;
  }

  std::vector<GpuCall> launches() const {
    std::vector<GpuCall> found;
    std::ranges::copy_if(calls_, std::back_inserter(found),
                         [](const GpuCall& call) { return call.kind == GpuCall::Kind::launch; });
    return found;
  }

  const KernelResources resources_{"k", 40, 0, 3000};  // six blocks of it fit an SM
  ThreadPool pool_{2};
  emulation::Usage usage_;
  std::vector<GpuCall> calls_;
  std::set<std::string> asked_for_;  // texts
  Gpu gpu_;
  std::vector<float> values_;
  GpuBuffer rows_;
  std::vector<SparseBatch> batches_;
  std::unique_ptr<GpuPoolSubject> subject_;
};

/// The blocks of a launch that is done: the emulator's memory is the host's.
std::span<const gpu::PoolBlock> blocks_of(const GpuCall& launch) {
  gpu::PoolArguments arguments;
  RECMILL_CHECK(launch.arguments.size() == sizeof arguments);
  std::memcpy(&arguments, launch.arguments.data(), sizeof arguments);
  return {arguments.blocks, launch.grid.blocks.x};
}

TEST_F(GpuTuningLaunches, AllCandidatesOfAFeatureAreOneLaunchABatch) {
  const auto times = subject_->time_candidates(0, 2, /*visited=*/2, /*rounds=*/3);
  ASSERT_TRUE(times.ok()) << times.status().message();
  ASSERT_GT(times->candidates.size(), 10u);
  EXPECT_EQ(launches().size(), 6u);
}

TEST_F(GpuTuningLaunches, AsManyBlocksFitAnSmAsAreTimed) {
  for (const int64_t blocks : {2, 3}) {
    calls_.clear();
    const auto times = subject_->time_candidates(0, blocks, 1, 1);
    ASSERT_TRUE(times.ok()) << times.status().message();
    const auto schedules = subject_->by_feature(subject_->defaults());
    const auto fused = subject_->fuse(schedules, {.blocks = blocks});
    ASSERT_TRUE(fused.ok()) << fused.status().message();
    ASSERT_TRUE(subject_->run_fused(*fused, 0).ok());
    const auto launched = launches();
    ASSERT_EQ(launched.size(), 2u);
    for (const GpuCall& launch : launched) {
      const auto unused = static_cast<int64_t>(launch.grid.dynamic_shared);
      EXPECT_EQ(unused,
                shared_that_leaves(gpu_.properties(), resources_, gpu::kBlockThreads, blocks))
          << launch.kernel;
      EXPECT_EQ(blocks_per_sm(gpu_.properties(), resources_, gpu::kBlockThreads, unused), blocks)
          << launch.kernel;
    }
  }
}

TEST_F(GpuTuningLaunches, AnyNumberOfBlocksWithoutSharedMemoryThatNobodyUses) {
  const auto fused = subject_->fuse(subject_->by_feature(subject_->defaults()), {});
  ASSERT_TRUE(fused.ok()) << fused.status().message();
  ASSERT_TRUE(subject_->run_fused(*fused, 0).ok());
  ASSERT_EQ(launches().size(), 1u);
  EXPECT_EQ(launches()[0].grid.dynamic_shared, 0u);
}

TEST_F(GpuTuningLaunches, BlocksThatFillTheGpuStandAtEachEnd) {
  for (const int64_t blocks : {2, 3}) {
    calls_.clear();
    const auto times = subject_->time_candidates(0, blocks, 1, 1);
    ASSERT_TRUE(times.ok()) << times.status().message();
    ASSERT_EQ(launches().size(), 1u);
    const auto mapped = blocks_of(launches()[0]);
    const int32_t filling = std::ranges::max(mapped, {}, &gpu::PoolBlock::feature).feature;
    const auto is_timed = [&](const gpu::PoolBlock& block) { return block.feature != filling; };
    const auto first = std::ranges::find_if(mapped, is_timed);
    const auto last = std::ranges::find_if(mapped.rbegin(), mapped.rend(), is_timed);
    EXPECT_GE(first - mapped.begin(), blocks * kSms);
    EXPECT_GE(last - mapped.rbegin(), blocks * kSms);
    std::set<int32_t> timed;
    for (const gpu::PoolBlock& block : mapped) timed.insert(block.feature);
    EXPECT_EQ(std::ssize(timed), filling + 1);  // none is left out
  }
}

TEST_F(GpuTuningLaunches, NothingIsCompiledThatWasNotBeforehand) {
  const std::vector<int64_t> blocks{2, 3};
  ASSERT_TRUE(subject_->compile_candidates(blocks).ok());
  const auto beforehand = asked_for_;
  EXPECT_EQ(beforehand.size(), blocks.size());
  for (const int64_t at : blocks) ASSERT_TRUE(subject_->time_candidates(0, at, 1, 1).ok());
  EXPECT_EQ(asked_for_, beforehand);
}

TEST(GpuTuningSource, IsOneForAllCandidatesOfAFeature) {
  size_t most = 0;
  for (const int64_t dim : {1, 2, 3, 8, 32, 64, 128, 256}) {
    for (const Pooling pooling : {Pooling::sum, Pooling::mean, Pooling::none}) {
      for (const bool deterministic : {false, true}) {
        const FeatureShape shape{kRows,   dim,   RowPrecision::float32,
                                 pooling, false, {20, 5, 0.1, 50}};
        const auto functions =
            gpu_tuning_functions(shape, RowStorage::of(nullptr, kRows, dim), deterministic);
        const auto sources = gpu_pool_sources(functions, gpu_tuning_options(1));
        ASSERT_TRUE(sources.ok()) << sources.status().message();
        EXPECT_EQ(sources->size(), 1u) << dim << ": " << functions.size();
        most = std::max(most, functions.size());
      }
    }
  }
  EXPECT_GE(most, 156u);  // RecFlex's; other sources have 100
}

}  // namespace
}  // namespace recmill::kernels::tune
