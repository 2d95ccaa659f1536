// SPDX-License-Identifier: Apache-2.0
#include "kernels/tune/gpu_tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <set>
#include <string>

#include "device/gpu/emulated_driver.h"
#include "kernels/codegen/testing/kernel_folder.h"
#include "kernels/testing/random_bags.h"

namespace recmill::kernels::tune {
namespace {

using codegen::GpuSource;
using codegen::LibraryCache;

constexpr int64_t kRows = 50;

struct TunedKind {
  int64_t dim, longest;
  Pooling pooling = Pooling::sum;
  bool weighted = false;
};
const std::vector<TunedKind> kKinds{
    {3, -1}, {3, -1}, {1, 30}, {2, 5, Pooling::mean, true}, {1, 3, Pooling::none}};

/// A model of a few features on the GPU that the CPU plays.
class GpuTunerTest : public testing::Test {
 protected:
  explicit GpuTunerTest(const EmulatedGpu& of = {})
      : cache_(cache_options(), posix_files()),
        gpu_(*make_emulated_driver(counted(of)), {}),
        stream_(*gpu_.open_stream()) {
    for (int64_t samples : {140, 7}) add_batch(samples);
    for (size_t f = 0; f < kKinds.size(); ++f) add_feature(kKinds[f], f);
  }

  static codegen::LibraryCacheOptions cache_options() {
    codegen::LibraryCacheOptions options;
    options.folder = codegen::kernel_folder();
    options.compiler.program = RECMILL_COMPILER;
    return options;
  }

  EmulatedGpu counted(EmulatedGpu of) {
    of.sms = 1;
    of.usage = &usage_;
    return of;
  }

  void add_batch(int64_t samples) {
    SparseBatch& batch = batches_.emplace_back();
    batch.samples = samples;
    for (size_t f = 0; f < kKinds.size(); ++f)
      batch.features.push_back(random_bags({samples, kKinds[f].longest, kRows, kKinds[f].weighted},
                                           10 * f + batches_.size()));
  }

  void add_feature(const TunedKind& kind, uint64_t seed) {
    const auto& values = values_.emplace_back(random_floats(kRows * kind.dim, seed + 1));
    auto staged = *gpu_.allocate_pinned(values.size() * sizeof(float), "table");
    std::ranges::copy(values, staged.as<float>().begin());
    const GpuBuffer& rows = rows_.emplace_back(*gpu_.allocate(staged.size(), "table"));
    RECMILL_CHECK(stream_.to_device(rows_.back(), staged, staged.size()).ok());
    RECMILL_CHECK(stream_.synchronize().ok());
    features_.push_back({RowStorage::of(values_.back().data(), kRows, kind.dim), rows.address<u8>(),
                         kind.pooling, kind.weighted});
  }

  std::unique_ptr<GpuPoolSubject> subject(bool deterministic = true) {
    GpuPoolSubjectOptions options;
    options.deterministic = deterministic;
    options.compile = [this](std::span<const GpuSource> sources) { return compile(sources); };
    return *GpuPoolSubject::make(gpu_, features_, batches_, options, pool_);
  }

  Result<std::vector<codegen::GpuCode>> compile(std::span<const GpuSource> sources) {
    RECMILL_ASSIGN_OR_RETURN(auto codes, codegen::emulated_code(sources, cache_));
    for (size_t s = 0; s < codes.size(); ++s)
      for (const int64_t blocks : spilling_)
        if (sources[s].text.find("at least " + std::to_string(blocks) + " blocks of an SM") !=
            std::string::npos)
          codes[s].spilled = 16;
    return codes;
  }

  Result<FamilyTuning> tune(GpuPoolSubject& subject) {
    const GpuTunerOptions options{.blocks = {2, 8}, .visited = 2, .rounds = 1, .fused_rounds = 1};
    return tune_on_gpu(
        subject, options, [](double) {}, never_);
  }

  ThreadPool pool_{2};
  LibraryCache cache_;
  emulation::Usage usage_;
  Gpu gpu_;
  GpuStream stream_;
  std::deque<std::vector<float>> values_;
  std::deque<GpuBuffer> rows_;
  std::vector<GpuPooledRows> features_;
  std::vector<SparseBatch> batches_;
  std::set<int64_t> spilling_;  // blocks of an SM for which the emulator says so
  const std::atomic<bool> never_{false};
};

TEST_F(GpuTunerTest, EveryClassGetsItsFastestRightSchedule) {
  const auto of = subject();
  const auto tuned = tune(*of);
  ASSERT_TRUE(tuned.ok()) << tuned.status().message();
  ASSERT_EQ(tuned->times.classes.size(), kKinds.size() - 1);  // the first two are one
  ASSERT_EQ(tuned->times.values.size(), 3u);
  EXPECT_TRUE(tuned->times.values[0].value.defaults);
  EXPECT_EQ(tuned->times.values[2].value.blocks, 8);
  for (const ValueTimes& at : tuned->times.values) {
    EXPECT_GT(at.fused_nanoseconds, 0.0);
    for (const ClassTimes& of_class : at.classes)
      for (const CandidateTime& candidate : of_class.candidates) {
        EXPECT_EQ(candidate.refused, "");
        EXPECT_GT(candidate.nanoseconds, 0.0) << candidate.schedule.name();
      }
  }
  EXPECT_EQ(tuned->choice, *choose(tuned->times));
  EXPECT_FALSE(tuned->choice.value.defaults);
  EXPECT_EQ(tuned->choice.schedules[0].schedule.of, "one_each");
  EXPECT_EQ(tuned->choice.schedules[3].schedule.of, "rows_copied");
  EXPECT_LT(tuned->measured_nanoseconds, tuned->default_nanoseconds);
  EXPECT_GT(tuned->code.pointers, 0.0);
  // Candidates that reorder sums are none here, and some where they may win.
  const auto reorders = [](const CandidateTime& candidate) {
    return candidate.order == Order::reorders;
  };
  EXPECT_TRUE(std::ranges::none_of(tuned->times.values[1].classes[1].candidates, reorders));
  const auto free = subject(/*deterministic=*/false)->time_candidates(1, 8, 1, 1);
  ASSERT_TRUE(free.ok()) << free.status().message();
  EXPECT_TRUE(std::ranges::any_of(free->candidates, reorders));
  for (const CandidateTime& candidate : free->candidates) EXPECT_EQ(candidate.refused, "");
}

TEST_F(GpuTunerTest, WhatSpillsRegistersIsNotChosenThoughItIsFaster) {
  const std::string spills = " of an SM spills 16 bytes a thread: ";
  const std::string two = "embedding_pool with 2 blocks" + spills;
  const std::string eight = "embedding_pool with 8 blocks" + spills;
  const std::string left_out = "left out of the choice\n";
  const auto check = [&](const std::set<int64_t>& spilling, const FusedParameters& expected,
                         const std::string& said) {
    spilling_ = spilling;
    testing::internal::CaptureStderr();
    const auto tuned = tune(*subject());
    EXPECT_EQ(testing::internal::GetCapturedStderr(), said);
    ASSERT_TRUE(tuned.ok()) << tuned.status().message();
    EXPECT_EQ(tuned->choice.value, expected);
    EXPECT_GT(tuned->default_nanoseconds, 0.0);
    // The record leads to the same choice.
    const std::string text = *record_text({{}, {*tuned}, 0.0});
    const auto read = parse_record(text, "r.json");
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->families[0].choice, tuned->choice);
    EXPECT_EQ(*record_text(*read), text);
  };
  check({2}, {.blocks = 8}, two + left_out);
  check({8}, {.blocks = 2}, eight + left_out);
  check({2, 8}, {.defaults = true}, two + left_out + eight + left_out);
}

TEST_F(GpuTunerTest, OnTheEmulatorTimesAreTheSameEachTime) {
  const auto first = tune(*subject());
  const int64_t compiled = cache_.compilations();
  const auto second = tune(*subject());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(cache_.compilations(), compiled);
  ASSERT_EQ(first->times.values.size(), second->times.values.size());
  for (size_t v = 0; v < first->times.values.size(); ++v)
    for (size_t c = 0; c < first->times.classes.size(); ++c)
      for (size_t k = 0; k < first->times.values[v].classes[c].candidates.size(); ++k)
        EXPECT_NEAR(first->times.values[v].classes[c].candidates[k].nanoseconds,
                    second->times.values[v].classes[c].candidates[k].nanoseconds, 1e-6);
  EXPECT_EQ(schedules_of(first->choice), schedules_of(second->choice));
}

// Though the default schedule, which fills launches, is among the candidates of some classes.
TEST_F(GpuTunerTest, NoScheduleIsACandidateTwice) {
  const auto of = subject();
  const auto defaults = of->defaults();
  const auto check = [&](size_t of_class, const Result<ClassTimes>& times) {
    ASSERT_TRUE(times.ok()) << times.status().message();
    std::set<std::string> schedules;
    for (const CandidateTime& candidate : times->candidates)
      EXPECT_TRUE(schedules.insert(candidate.schedule.name()).second) << candidate.schedule.name();
    EXPECT_TRUE(schedules.contains(defaults[of_class].name()));
  };
  for (size_t c = 0; c < defaults.size(); ++c) check(c, of->time_candidates(c, 8, 1, 1));
  check(3, of->time_alone(3, 1, 1));
}

TEST_F(GpuTunerTest, AWrongAnswerIsRefused) {
  const auto of = subject();
  for (float& value : values_[2]) value += 1.0f;  // of the host alone
  const auto times = of->time_candidates(1, 8, 1, 1);
  ASSERT_TRUE(times.ok()) << times.status().message();
  for (const CandidateTime& candidate : times->candidates)
    EXPECT_NE(candidate.refused.find("its answer is not the reference's"), std::string::npos);
}

TEST_F(GpuTunerTest, WhatWasRightBeforeIsNoAnswer) {
  const auto of = subject();
  const auto schedules = of->by_feature(of->defaults());
  const auto fused = of->fuse(schedules, {});
  ASSERT_TRUE(fused.ok()) << fused.status().message();
  EXPECT_EQ(of->check_fused(*fused, schedules, 0).message(), "");
  const auto leave_out_last = [](std::vector<gpu::PoolBlock>& blocks) {
    blocks.pop_back();
    return std::vector<int64_t>();
  };
  EXPECT_EQ(of->check_fused(*fused, schedules, 0, leave_out_last)
                .message()
                .rfind("feature number 4: the answer of 'rows_copied ", 0),
            0u);
}

class GpuTunerBesideASmallHost : public GpuTunerTest {
 protected:
  static constexpr int64_t kPinned = 1 << 20;
  GpuTunerBesideASmallHost() : GpuTunerTest({.pinned_memory = kPinned}) {}
};

TEST_F(GpuTunerBesideASmallHost, ChecksOneAnswerAfterTheOther) {
  constexpr int64_t kSamples = 2000;
  batches_.clear();
  add_batch(kSamples);
  const auto of = subject();
  const FeatureShape& shape = of->classes()[2].shape;
  const auto times = of->time_candidates(2, 8, 1, 1);
  ASSERT_TRUE(times.ok()) << times.status().message();
  for (const CandidateTime& candidate : times->candidates) EXPECT_EQ(candidate.refused, "");
  const auto count = std::ssize(times->candidates);
  EXPECT_GT(count * kSamples * shape.dim * int64_t{sizeof(float)}, kPinned);
}

TEST_F(GpuTunerTest, StopsWhenItIsTold) {
  const std::atomic<bool> now{true};
  const auto of = subject();
  const auto stopped = tune_on_gpu(
      *of, {.blocks = {1}}, [](double) {}, now);
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.status().message(), "interrupted");
}

TEST(GpuTuner, ComparesOccupanciesThatLeaveAThreadItsRegisters) {
  GpuProperties gpu = *gpu_of_architecture("sm_90");
  EXPECT_EQ(gpu_occupancies(gpu), (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));  // 7: 36 of them
  gpu.registers *= 2;
  EXPECT_EQ(gpu_occupancies(gpu).back(), 8);  // as many as it has threads for
  gpu.registers = 40 * 256;
  EXPECT_EQ(gpu_occupancies(gpu), std::vector<int64_t>{1});
}

TEST(SharedThatLeaves, NotOneBlockMore) {
  const GpuProperties gpu = *gpu_of_architecture("sm_90");
  for (int registers : {0, 32, 64, 128}) {
    const KernelResources kernel{"k", registers, 0, 3000};
    for (int64_t blocks = 1; blocks <= 8; ++blocks) {
      const int most = blocks_per_sm(gpu, kernel, 256, 0);
      const int64_t unused = shared_that_leaves(gpu, kernel, 256, blocks);
      EXPECT_EQ(blocks_per_sm(gpu, kernel, 256, unused), std::min<int64_t>(most, blocks));
    }
  }
}

}  // namespace
}  // namespace recmill::kernels::tune
