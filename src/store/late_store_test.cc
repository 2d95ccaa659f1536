// SPDX-License-Identifier: Apache-2.0
#include "store/testing/late_store.h"

#include <gtest/gtest.h>

#include "store/store_contract.h"
#include "store/table_store.h"

namespace recmill::store {
namespace {

struct LateFixture {
  static constexpr bool kManyRanks = true;
  static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
                                                      Communicator& communicator,
                                                      ThreadPool& pool) {
    RECMILL_ASSIGN_OR_RETURN(auto inner, create_table_store(model, seed, communicator, pool));
    return std::unique_ptr<EmbeddingStore>(
        std::make_unique<testing::LateStore>(model, std::move(inner), communicator));
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Late, StoreContract, LateFixture);

// A table of 8 rows, and batches that look one row up.
class LateStoreOfOneTable : public ::testing::Test {
 protected:
  LateStoreOfOneTable() {
    model_.tables.push_back({.name = "t", .rows = 8, .dim = 2, .optimizer = {}});
    model_.features.push_back({.name = "f", .table = 0});
    auto inner = create_table_store(model_, 1, *communicator_, pool_);
    store_ = std::make_unique<testing::LateStore>(model_, *std::move(inner), *communicator_);
  }

  // Looks `row` up and, in training, updates it. All memory of the batch is gone afterwards.
  void step(int64_t row, Purpose purpose) {
    SparseBatch sparse;
    sparse.samples = 1;
    sparse.features.push_back({{0, 1}, {row}, {}, true});
    Batch batch;
    batch.purpose = purpose;
    batch.cut = {1, 1};
    batch.sparse = &sparse;
    auto prepared = store_->prepare(batch);
    ASSERT_TRUE(prepared.ok());
    std::vector<float> out(2), gradient(2, 1.0f);
    const FeatureOutput output{out.data(), 2};
    ASSERT_TRUE(store_->lookup(**prepared, {&output, 1}, stream_).ok());
    if (purpose != Purpose::train) return;
    const FeatureGradient feature_gradient{gradient.data(), 2};
    const Update update{prepared->get(), {&feature_gradient, 1}};
    ASSERT_TRUE(store_->update({&update, 1}, {}, stream_).ok());
  }

  ModelSpec model_;
  const ThreadsGroup group_{1};
  const std::unique_ptr<Communicator> communicator_ = group_.communicator(0);
  ThreadPool pool_{1};
  Stream stream_{pool_};
  std::unique_ptr<testing::LateStore> store_;
};

TEST_F(LateStoreOfOneTable, finishes_updates_only_up_to_the_last_one_that_a_lookup_needs) {
  for (int64_t row : {1, 2, 3, 4}) step(row, Purpose::train);
  EXPECT_EQ(store_->pending(), 4u);
  step(7, Purpose::evaluate);
  EXPECT_EQ(store_->pending(), 4u);
  step(2, Purpose::evaluate);
  EXPECT_EQ(store_->pending(), 2u);
  EXPECT_TRUE(store_->settle().ok());
  EXPECT_EQ(store_->pending(), 0u);
  EXPECT_EQ(store_->stats().updated_rows, 4);
}

}  // namespace
}  // namespace recmill::store
