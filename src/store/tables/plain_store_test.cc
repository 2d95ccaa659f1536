// SPDX-License-Identifier: Apache-2.0
#include "store/tables/plain_store.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "store/store_contract.h"

namespace recmill::store {
namespace {

struct PlainFixture {
  static constexpr bool kManyRanks = false;
  static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
                                                      Communicator&, ThreadPool& pool) {
    RECMILL_ASSIGN_OR_RETURN(auto store, PlainStore::create(model, seed, pool));
    return std::unique_ptr<EmbeddingStore>(std::move(store));
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Plain, StoreContract, PlainFixture);

// One table of dimension 1 trained by SGD with rate 1 from zeros: after one step a row is minus its
// gradient.
class PlainGradient : public ::testing::Test {
 protected:
  float of_row_0(const FeatureSpec& feature, const SparseBatch& sparse, int slices,
                 const std::vector<std::vector<float>>& gradients) {
    ModelSpec model;
    TableSpec table;
    table.name = "t";
    table.rows = 2;
    table.dim = 1;
    table.optimizer.kind = OptimizerKind::sgd;
    table.optimizer.learning_rate = 1.0;
    model.tables.push_back(table);
    model.features.push_back(feature);
    ThreadPool pool(1);
    Stream stream(pool);
    auto store = PlainStore::create(model, 1, pool);
    const std::vector<float> zeros(2);
    EXPECT_TRUE((*store)->write_rows({0, 0, 2, zeros, {}}).ok());
    Batch batch;
    batch.cut = {sparse.samples, slices};
    batch.end_slice = slices;
    batch.sparse = &sparse;
    std::vector<std::unique_ptr<Prepared>> prepared;
    std::vector<FeatureGradient> views;
    views.reserve(gradients.size());
    std::vector<Update> updates;
    for (const auto& gradient : gradients) views.push_back({gradient.data(), 1});
    for (size_t i = 0; i < gradients.size(); ++i) {
      prepared.push_back(*(*store)->prepare(batch));
      updates.push_back({prepared.back().get(), std::span(&views[i], 1)});
    }
    EXPECT_TRUE((*store)->update(updates, {}, stream).ok());
    float weight = 0;
    EXPECT_TRUE((*store)
                    ->read_rows([&](const RowBlock& block) {
                      if (block.first == 0) weight = block.weights[0];
                      return Status();
                    })
                    .ok());
    return -weight;
  }
};

constexpr float kBig = 1 << 24;  // kBig + 1 == kBig in float32

TEST_F(PlainGradient, folds_within_a_slice_and_adds_slices_by_the_tree) {
  SparseBatch sparse;
  sparse.samples = 4;
  sparse.features.push_back({{0, 1, 2, 3, 4}, {0, 0, 0, 0}, {}, true});
  const std::vector<float> gradient{kBig, 1, 1, -kBig};
  const FeatureSpec feature{.name = "f"};
  EXPECT_EQ(of_row_0(feature, sparse, 1, {gradient}), ((kBig + 1) + 1) - kBig);  // 0
  EXPECT_EQ(of_row_0(feature, sparse, 2, {gradient}), (kBig + 1) + (1 - kBig));  // 1
}

TEST_F(PlainGradient, divides_a_mean_and_then_multiplies_by_the_weight) {
  SparseBatch sparse;
  sparse.samples = 1;
  sparse.features.push_back({{0, 3}, {0, 1, 0}, {0.5f, 9.0f, 3.0f}, false});
  const FeatureSpec feature{.name = "f", .pooling = Pooling::mean, .weighted = true};
  const float third = 1.0f / 3.0f;
  EXPECT_EQ(of_row_0(feature, sparse, 1, {{1.0f}}), third * 0.5f + third * 3.0f);
}

TEST_F(PlainGradient, goes_on_from_update_to_update_within_a_slice) {
  SparseBatch sparse;
  sparse.samples = 2;
  sparse.features.push_back({{0, 1, 2}, {0, 0}, {}, true});
  const FeatureSpec feature{.name = "f"};
  // Slice 0 folds 1, kBig; slice 1 folds 1, -kBig. Update by update it would be (1 + 1) + 0.
  EXPECT_EQ(of_row_0(feature, sparse, 2, {{1, 1}, {kBig, -kBig}}), (1 + kBig) + (1 - kBig));
}

}  // namespace
}  // namespace recmill::store
