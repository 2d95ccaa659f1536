// SPDX-License-Identifier: Apache-2.0
#include "store/testing/planned_store.h"

#include <gtest/gtest.h>

#include "store/store_contract.h"
#include "store/table_store.h"

namespace recmill::store {
namespace {

struct PlannedFixture {
  static constexpr bool kManyRanks = true;
  static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
                                                      Communicator& communicator,
                                                      ThreadPool& pool) {
    RECMILL_ASSIGN_OR_RETURN(auto inner, create_table_store(model, seed, communicator, pool));
    return std::unique_ptr<EmbeddingStore>(
        std::make_unique<testing::PlannedStore>(std::move(inner)));
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Planned, StoreContract, PlannedFixture);

// A table of 8 rows, and batches that look one row up.
class PlannedStoreOfOneTable : public ::testing::Test {
 protected:
  PlannedStoreOfOneTable() {
    model_.tables.push_back({.name = "t", .rows = 8, .dim = 2, .optimizer = {}});
    model_.features.push_back({.name = "f", .table = 0});
    sparse_.samples = 1;
    sparse_.features.push_back({{0, 1}, {3}, {}, true});
    auto inner = create_table_store(model_, 1, *communicator_, pool_);
    store_ = std::make_unique<testing::PlannedStore>(*std::move(inner));
  }

  // "" or why the batch is refused.
  std::string prepare(Purpose purpose, int64_t iteration, std::optional<StepPlan> plan) {
    Batch batch;
    batch.iteration = iteration;
    batch.purpose = purpose;
    batch.cut = {1, 1};
    batch.sparse = &sparse_;
    if (plan) batch.plan = std::make_shared<const StepPlan>(*plan);
    return store_->prepare(batch).status().message();
  }

  ModelSpec model_;
  SparseBatch sparse_;
  const ThreadsGroup group_{1};
  const std::unique_ptr<Communicator> communicator_ = group_.communicator(0);
  ThreadPool pool_{1};
  std::unique_ptr<testing::PlannedStore> store_;
};

TEST_F(PlannedStoreOfOneTable, takes_each_step_of_a_stream_once_and_in_order) {
  EXPECT_EQ(prepare(Purpose::train, 0, StepPlan{0, 0}), "");
  EXPECT_EQ(prepare(Purpose::train, 0, StepPlan{0, 0}), "");  // of the same update
  EXPECT_EQ(prepare(Purpose::evaluate, 1, StepPlan{1, 1}), "");
  EXPECT_EQ(prepare(Purpose::evaluate, 1, StepPlan{2, 1}), "");
  EXPECT_EQ(prepare(Purpose::serve, 0, std::nullopt), "");  // beside the stream
  EXPECT_EQ(prepare(Purpose::evaluate, 7, std::nullopt), "");
  EXPECT_EQ(prepare(Purpose::train, 1, StepPlan{3, 1}), "");
  EXPECT_EQ(store_->steps(), 4);
}

TEST_F(PlannedStoreOfOneTable, refuses_a_batch_without_its_own_plan) {
  EXPECT_EQ(prepare(Purpose::train, 0, std::nullopt), "a batch of iteration 0 has no plan");
  EXPECT_EQ(prepare(Purpose::train, 0, StepPlan{1, 0}),
            "a batch of iteration 0 has the plan of step 1, iteration 0, after none");
  ASSERT_EQ(prepare(Purpose::train, 0, StepPlan{0, 0}), "");
  const std::string after = ", after step 0, iteration 0";
  EXPECT_EQ(prepare(Purpose::train, 1, StepPlan{1, 0}),
            "a batch of iteration 1 has the plan of step 1, iteration 0" + after);
  EXPECT_EQ(prepare(Purpose::train, 1, StepPlan{2, 1}),
            "a batch of iteration 1 has the plan of step 2, iteration 1" + after);
  EXPECT_EQ(prepare(Purpose::evaluate, 0, StepPlan{0, 0}),
            "a batch of iteration 0 has the plan of step 0, iteration 0" + after);
  EXPECT_EQ(prepare(Purpose::train, 1, StepPlan{1, 1}), "");
}

}  // namespace
}  // namespace recmill::store
