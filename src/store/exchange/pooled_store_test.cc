// SPDX-License-Identifier: Apache-2.0
// The placed store where owners pool.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <unordered_map>

#include "batch/feature_layout.h"
#include "placement_plan/testing/random_plan.h"
#include "store/placed/placed_store.h"
#include "store/store_contract.h"
#include "store/testing/wandering_store.h"

namespace recmill::store {
namespace {

/// A random plan in which owners pool where all of a table's features are pooled.
PlacementPlan pooled_plan(const ModelSpec& model, int ranks, uint64_t seed) {
  PlacementPlan plan = recmill::testing::random_plan(model.tables, ranks, seed);
  for (TablePlacement& table : plan.tables) table.send_pooled = true;
  for (const FeatureSpec& feature : model.features)
    if (!is_pooled(feature.pooling)) plan.tables[feature.table].send_pooled = false;
  return plan;
}

/// Nothing that was looked up is seen, so that gradients do not lean on it.
class BlindStore final : public testing::ForwardingStore {
 public:
  explicit BlindStore(std::unique_ptr<EmbeddingStore> inner) : ForwardingStore(std::move(inner)) {}

  Result<std::unique_ptr<Prepared>> prepare(const Batch& batch) override {
    RECMILL_ASSIGN_OR_RETURN(auto prepared, inner().prepare(batch));
    std::lock_guard lock(mutex_);
    batches_[prepared.get()] = batch.sparse;
    return prepared;
  }
  Status lookup(Prepared& prepared, Output output, Stream& stream) override {
    RECMILL_RETURN_IF_ERROR(inner().lookup(prepared, output, stream));
    std::lock_guard lock(mutex_);
    const SparseBatch& sparse = *batches_[&prepared];
    const ModelSpec model = testing::scenario_model();
    for (size_t f = 0; f < output.size(); ++f) {
      const int64_t items =
          rows_out(model.features[f].pooling, sparse.features[f].view(sparse.samples));
      for (int64_t i = 0; i < items; ++i)
        std::fill_n(output[f].data + i * output[f].stride, model.dim_of(f), 0.0f);
    }
    return {};
  }

 private:
  std::mutex mutex_;
  std::unordered_map<const Prepared*, const SparseBatch*> batches_;
};

/// Carries the scenario out at so many ranks.
void carry_out_pooled(const testing::Scenario& scenario, const PlacementPlan& plan,
                      ShardedOptions options, bool blind, testing::Trace& trace) {
  const auto placed = table::PlacedTables::create(plan, scenario.model.tables, plan.devices);
  ASSERT_TRUE(placed.ok()) << placed.status().message();
  ThreadPool pool(2);
  const Status status = run_ranks(plan.devices, [&](Communicator& inner) -> Status {
    DelayedCommunicator communicator(inner, scenario.seed);
    RECMILL_ASSIGN_OR_RETURN(
        std::unique_ptr<EmbeddingStore> store,
        PlacedStore::create(scenario.model, scenario.seed, communicator, pool, *placed, options));
    if (blind) store = std::make_unique<BlindStore>(std::move(store));
    return testing::carry_out(scenario, *store, communicator.rank(), plan.devices, pool, trace);
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

constexpr ShardedOptions kOptions[] = {{true, CopyReduce::sparse},
                                       {true, CopyReduce::dense},
                                       {true, CopyReduce::all_gather},
                                       {true, CopyReduce::automatic},
                                       {false, CopyReduce::automatic},
                                       {true, CopyReduce::automatic, true, true, false},
                                       {false, CopyReduce::automatic, true, true, false}};

TEST(PooledStore, has_the_bits_of_the_plain_store_where_bags_have_one_lookup) {
  auto scenario = testing::training_scenario(41, 6);
  for (FeatureSpec& feature : scenario.model.features) {
    feature.pooling = Pooling::sum;
    feature.weighted = false;
  }
  const auto expected = plain_trace(scenario);
  for (const int ranks : {1, 2, 3, 4, 8}) {
    const auto plan = pooled_plan(scenario.model, ranks, 41);
    for (const ShardedOptions& options : kOptions) {
      if (ranks > 2 && options.reduce != CopyReduce::automatic) continue;
      testing::Trace trace(scenario);
      carry_out_pooled(scenario, plan, options, false, trace);
      EXPECT_EQ(trace.difference(*expected), "") << ranks << " ranks";
    }
  }
}

TEST(PooledStore, adds_gradients_of_any_bags_to_the_bits_of_the_contract) {
  for (const auto& scenario :
       {testing::training_scenario(42, 4), testing::random_scenario(43, 12)}) {
    testing::Trace expected(scenario);
    ThreadPool pool(1);
    auto plain = PlainStore::create(scenario.model, scenario.seed, pool);
    ASSERT_TRUE(plain.ok());
    BlindStore blind(*std::move(plain));
    ASSERT_TRUE(
        testing::carry_out(testing::without_snapshots(scenario), blind, 0, 1, pool, expected).ok());
    for (const int ranks : {2, 3, 4}) {
      const auto plan = pooled_plan(scenario.model, ranks, scenario.seed);
      for (const ShardedOptions& options : kOptions) {
        if (ranks > 2 && options.reduce != CopyReduce::automatic) continue;
        testing::Trace trace(scenario);
        carry_out_pooled(scenario, plan, options, true, trace);
        EXPECT_EQ(trace.difference(expected), "") << ranks << " ranks";
      }
    }
  }
}

TEST(PooledStore, moves_rows_from_plans_with_pooling_owners_to_others_and_back) {
  const auto scenario = testing::training_scenario(46, 10);
  testing::Trace expected(scenario);
  ThreadPool one(1);
  auto plain = PlainStore::create(scenario.model, scenario.seed, one);
  ASSERT_TRUE(plain.ok());
  BlindStore blind(*std::move(plain));
  ASSERT_TRUE(
      testing::carry_out(testing::without_snapshots(scenario), blind, 0, 1, one, expected).ok());
  for (const int ranks : {2, 4}) {
    const auto next_plan = [&](int64_t iteration) {
      const auto seed = static_cast<uint64_t>(iteration);
      return iteration % 4 < 2 ? pooled_plan(scenario.model, ranks, seed)
                               : recmill::testing::random_plan(scenario.model.tables, ranks, seed);
    };
    const auto placed = table::PlacedTables::create(next_plan(0), scenario.model.tables, ranks);
    ASSERT_TRUE(placed.ok()) << placed.status().message();
    ThreadPool pool(2);
    testing::Trace trace(scenario);
    const Status status = run_ranks(ranks, [&](Communicator& inner) -> Status {
      DelayedCommunicator communicator(inner, scenario.seed, /*shares_memory=*/false);
      RECMILL_ASSIGN_OR_RETURN(auto store, PlacedStore::create(scenario.model, scenario.seed,
                                                               communicator, pool, *placed));
      BlindStore moving(std::make_unique<testing::WanderingStore>(scenario.model, ranks,
                                                                  std::move(store), next_plan));
      return testing::carry_out(scenario, moving, communicator.rank(), ranks, pool, trace);
    });
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(trace.difference(expected), "") << ranks << " ranks";
  }
}

testing::Scenario evaluations(uint64_t seed) {
  testing::Scenario scenario{testing::scenario_model(), seed, 8, {}};
  for (const int64_t samples : {50, 1, 0, 33})
    scenario.operations.push_back({testing::Operation::Kind::evaluate, {samples}, 1.0, 0});
  scenario.operations.push_back({testing::Operation::Kind::read_rows, {}, 1.0, 0});
  return scenario;
}

// Two orders of adding n terms are apart by 2 n roundings of the sum of their sizes, at most.
TEST(PooledStore, pools_as_the_plain_store_but_for_the_roundings_of_its_terms) {
  const auto scenario = evaluations(44);
  const auto expected = plain_trace(scenario);
  std::vector<float> largest(scenario.model.tables.size());  // of a table's weights
  for (const auto& [key, values] : expected->rows.back())
    for (int64_t e = 0; e < scenario.model.tables[key.first].dim; ++e)
      largest[key.first] = std::max(largest[key.first], std::abs(values[e]));
  testing::Trace trace(scenario);
  carry_out_pooled(scenario, pooled_plan(scenario.model, 4, 44), {}, false, trace);
  int64_t others = 0;
  for (size_t number = 0; number < trace.outputs.size(); ++number) {
    for (size_t f = 0; f < trace.outputs[number].size(); ++f) {
      const auto& ours = trace.outputs[number][f];
      const auto& plain = expected->outputs[number][f];
      ASSERT_EQ(ours.size(), plain.size());
      constexpr float kTerms = 140;  // of a bag, at most
      const float most = 2 * kTerms * kTerms * std::numeric_limits<float>::epsilon() *
                         largest[scenario.model.features[f].table];
      for (size_t i = 0; i < ours.size(); ++i) {
        if (std::isnan(plain[i])) continue;
        EXPECT_NEAR(ours[i], plain[i], most) << scenario.model.features[f].name;
        others += ours[i] != plain[i] ? 1 : 0;
      }
    }
  }
  EXPECT_GT(others, 0);
}

TEST(PooledStore, gives_the_same_bits_from_run_to_run) {
  const auto scenario = testing::random_scenario(45, 10);
  const auto plan = pooled_plan(scenario.model, 3, 45);
  testing::Trace first(scenario), second(scenario);
  carry_out_pooled(scenario, plan, {}, false, first);
  carry_out_pooled(scenario, plan, {true, CopyReduce::automatic, false, false, false}, false,
                   second);
  EXPECT_EQ(second.difference(first), "");
}

TEST(PooledStore, owners_send_one_row_a_bag_and_get_one_gradient_back) {
  ModelSpec model;
  model.tables.push_back({.name = "t", .rows = 10, .dim = 16, .optimizer = {}});
  model.features.push_back({.name = "f", .table = 0});
  PlacementPlan plan{"test", 2, {}, {}};
  const int at0 = plan.path(FetchPath::at(0, 2)), at1 = plan.path(FetchPath::at(1, 2));
  plan.tables.push_back({"t", 10, 16, {}, {{5, at0}, {10, at1}}, {}, {}, true});
  const auto placed = table::PlacedTables::create(plan, model.tables, 2);
  uint64_t looked_up = 0, updated = 0;
  const Status status = run_ranks(2, [&](Communicator& communicator) -> Status {
    ThreadPool pool(1);
    ShardedOptions options;
    options.share_rows = false;
    RECMILL_ASSIGN_OR_RETURN(const auto store,
                             PlacedStore::create(model, 1, communicator, pool, *placed, options));
    SparseBatch sparse;
    sparse.samples = 3;
    sparse.features.push_back({{0, 6, 7, 12}, {5, 6, 7, 1, 5, 5, 1, 6, 7, 7, 1, 6}, {}, false});
    Batch batch;
    batch.cut = {6, 2};
    batch.first_slice = communicator.rank();
    batch.end_slice = communicator.rank() + 1;
    batch.sparse = &sparse;
    RECMILL_ASSIGN_OR_RETURN(const auto prepared, store->prepare(batch));
    std::vector<float> out(48);
    const FeatureOutput output{out.data(), 16};
    const FeatureGradient gradient{out.data(), 16};
    const Update update{prepared.get(), {&gradient, 1}};
    Stream stream(pool);
    const uint64_t before = communicator.traffic().received;
    RECMILL_RETURN_IF_ERROR(store->lookup(*prepared, {&output, 1}, stream));
    const uint64_t between = communicator.traffic().received;
    RECMILL_RETURN_IF_ERROR(store->update({&update, 1}, {0, 1.0}, stream));
    if (communicator.rank() == 0) {
      looked_up = between - before;
      updated = communicator.traffic().received - between;
    }
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.message();
  // Two bags have rows of rank 1, all three have one of rank 0: which the other asks for with four
  // ends and a note of rows that are fetched, three ends, and a count of bags.
  constexpr uint64_t kRow = 16 * 4, kWord = 8;
  EXPECT_EQ(looked_up, 2 * kRow + 3 * kWord + 3 * kWord + 3 * kWord + kWord);
  // Three gradients, and an empty message of rows.
  EXPECT_EQ(updated, 3 * kRow + 64);
}

}  // namespace
}  // namespace recmill::store
