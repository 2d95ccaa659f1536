// SPDX-License-Identifier: Apache-2.0
// Which streams a GPU's store enqueues its work on: batches are copied there ahead, beside the
// lookups of those before.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "batch/feature_layout.h"
#include "kernels/codegen/testing/recording_driver.h"
#include "kernels/codegen/testing/test_code.h"
#include "store/gpu/gpu_store.h"
#include "store/testing/scenario.h"

namespace recmill::store {
namespace {

using recmill::testing::GpuCall;
using recmill::testing::RecordingDriver;
using Calls = std::vector<GpuCall>;

bool is_lookup(const GpuCall& call) {
  return call.kind == GpuCall::Kind::launch && call.kernel.starts_with("fused_pool");
}

class GpuStoreStreams : public ::testing::TestWithParam<Purpose> {
 protected:
  GpuStoreStreams() {
    auto driver = std::make_unique<RecordingDriver>(recmill::testing::test_driver(), calls_);
    store_ =
        *GpuStore::create(model_, 1, std::make_unique<Gpu>(std::move(driver), GpuOptions{}),
                          {.slices = 16, .compile = &kernels::codegen::compile_for_tests}, pool_);
    for (int64_t number = 0; number < 2; ++number) {
      sparse_.push_back(testing::random_batch(model_, 5, number, /*samples=*/10));
      int64_t floats = 0;
      std::vector<int64_t> begins;
      for (size_t f = 0; f < model_.features.size(); ++f) {
        begins.push_back(floats);
        const auto bags = sparse_.back().features[f].view(sparse_.back().samples);
        floats += rows_out(model_.features[f].pooling, bags) * model_.dim_of(f);
      }
      outputs_.push_back(*store_->gpu().allocate(floats * sizeof(float), "rows"));
      for (size_t f = 0; f < model_.features.size(); ++f)
        rows_[number].push_back({outputs_.back().address<float>() + begins[f], model_.dim_of(f)});
    }
  }

  /// What is enqueued meanwhile.
  Calls calls_of(const std::function<void()>& work) {
    const auto before = std::ssize(calls_);
    work();
    return {calls_.begin() + before, calls_.end()};
  }
  Calls prepare(size_t number) {
    return calls_of([&] {
      Batch batch;
      batch.iteration = static_cast<int64_t>(number);
      batch.purpose = GetParam();
      batch.cut = {sparse_[number].samples, 4};
      batch.end_slice = 4;
      batch.sparse = &sparse_[number];
      prepared_[number] = *store_->prepare(batch);
    });
  }
  Calls lookup(size_t number) {
    return calls_of([&] {
      Stream stream(pool_, &store_->stream());
      const Status status = store_->lookup(*prepared_[number], rows_[number], stream);
      EXPECT_TRUE(status.ok()) << status.message();
    });
  }

  const ModelSpec model_ = testing::scenario_model();
  ThreadPool pool_{2};
  Calls calls_;
  std::unique_ptr<GpuStore> store_;
  std::vector<SparseBatch> sparse_;
  std::vector<GpuBuffer> outputs_;
  std::vector<FeatureOutput> rows_[2];
  std::unique_ptr<Prepared> prepared_[2];
};

TEST_P(GpuStoreStreams, ABatchIsCopiedBesideTheLookupsOfTheOneBefore) {
  prepare(0);
  const Calls lookup_before = lookup(0);
  ASSERT_TRUE(std::ranges::any_of(lookup_before, is_lookup));
  std::set<GpuDriver::Stream> of_lookups;
  for (const GpuCall& call : lookup_before) of_lookups.insert(call.stream);
  const Calls ahead = prepare(1);
  EXPECT_TRUE(std::ranges::any_of(
      ahead, [](const GpuCall& call) { return call.kind == GpuCall::Kind::copy; }));
  for (const GpuCall& call : ahead) {
    EXPECT_FALSE(of_lookups.contains(call.stream)) << static_cast<int>(call.kind);
    EXPECT_NE(call.kind, GpuCall::Kind::wait);
  }
}

TEST_P(GpuStoreStreams, LookupsWaitForAllThatWasSentOfTheirBatch) {
  prepare(0);
  lookup(0);
  const Calls sent = prepare(1);
  ASSERT_FALSE(sent.empty());
  EXPECT_EQ(sent.back().kind, GpuCall::Kind::record);  // after all copies, of the same stream
  for (const GpuCall& call : sent) EXPECT_EQ(call.stream, sent.back().stream);
  const Calls looked_up = lookup(1);
  const auto is_wait_for_it = [&](const GpuCall& call) {
    return call.kind == GpuCall::Kind::wait && call.event == sent.back().event;
  };
  const auto waits = std::ranges::find_if(looked_up, is_wait_for_it);
  const auto first = std::ranges::find_if(looked_up, is_lookup);
  ASSERT_NE(first, looked_up.end());
  ASSERT_LT(waits, first);
  EXPECT_EQ(waits->stream, first->stream);
}

INSTANTIATE_TEST_SUITE_P(Of, GpuStoreStreams, ::testing::Values(Purpose::train, Purpose::evaluate),
                         [](const auto& of) {
                           return of.param == Purpose::train ? "Training" : "Evaluation";
                         });

}  // namespace
}  // namespace recmill::store
