// SPDX-License-Identifier: Apache-2.0
// A cached store's threads beside each other: the one that prepares, training, the mover's, and who
// looks rows up outside the stream. For ThreadSanitizer.
#include <gtest/gtest.h>

#include "store/cached/testing/cached_fixture.h"
#include "store/cached/testing/sharded_cached_fixture.h"
#include "store/store_contract.h"

namespace recmill::store {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StoreContract);

namespace {

using Fixture = testing::CachedFixture<3, 2, /*kLate=*/true>;

/// Few tables, that share slots in part.
ModelSpec small_model() {
  ModelSpec model = testing::scenario_model();
  model.tables.resize(6);
  std::erase_if(model.features, [](const FeatureSpec& feature) { return feature.table >= 6; });
  for (size_t t = 0; t < 4; ++t) {
    model.tables[t].optimizer = {};
    model.tables[t].dim = 8;
  }
  return model;
}

TEST(CachedStoreThreads, train_evaluate_and_take_snapshots_to_the_bits_of_the_plain_store) {
  for (const uint64_t seed : {1, 2}) {
    testing::Scenario scenario = testing::random_scenario(seed, 40);
    scenario.model = small_model();
    for (testing::Operation& operation : scenario.operations) operation.table %= 6;
    scenario.look_ahead = &Fixture::look_ahead;
    const auto expected = plain_trace(scenario);
    ThreadPool pool(2);
    auto store = testing::make_cached<true>(scenario.model, scenario.seed, pool);
    ASSERT_TRUE(store.ok()) << store.status().message();
    testing::Trace trace(scenario);
    const Status status = testing::carry_out(scenario, **store, 0, 1, pool, trace);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(trace.difference(*expected), "") << "seed " << seed;
  }
}

/// Two ranks, whose rows move between them.
template <bool kShareRows>
void expect_bits_of_ranks() {
  using Ranks = testing::ShardedCachedFixture<CacheDesign::forward, 3, 1, kShareRows>;
  testing::Scenario scenario = testing::random_scenario(5, 30);
  scenario.model = small_model();
  for (testing::Operation& operation : scenario.operations) operation.table %= 6;
  scenario.look_ahead = &Ranks::look_ahead;
  const auto expected = plain_trace(scenario);
  ThreadPool pool(2);
  testing::Trace trace(scenario);
  const Status status = run_ranks(2, [&](Communicator& communicator) -> Status {
    RECMILL_ASSIGN_OR_RETURN(const auto store,
                             Ranks::make(scenario.model, scenario.seed, communicator, pool));
    return testing::carry_out(scenario, *store, communicator.rank(), 2, pool, trace);
  });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(trace.difference(*expected), "");
}

TEST(CachedStoreThreads, of_ranks_train_to_the_bits_of_the_plain_store) {
  expect_bits_of_ranks</*kShareRows=*/true>();
}

TEST(CachedStoreThreads, of_ranks_that_send_weights_train_to_the_bits_of_the_plain_store) {
  expect_bits_of_ranks</*kShareRows=*/false>();
}

TEST(CachedStoreThreads, look_up_outside_the_stream_at_the_same_time) {
  testing::Scenario scenario{.model = small_model(), .seed = 3, .operations = {}};
  scenario.in_stream = false;
  for (int i = 0; i < 4; ++i)
    scenario.operations.push_back({testing::Operation::Kind::evaluate, {20}, 1.0, 0});
  const auto expected = plain_trace(scenario);
  ThreadPool pool(2);
  auto store = testing::make_cached<true>(scenario.model, scenario.seed, pool);
  ASSERT_TRUE(store.ok()) << store.status().message();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&] {
      testing::Trace trace(scenario);
      const Status status = testing::carry_out(scenario, **store, 0, 1, pool, trace);
      EXPECT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(trace.difference(*expected), "");
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace recmill::store
