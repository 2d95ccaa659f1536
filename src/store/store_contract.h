// SPDX-License-Identifier: Apache-2.0
// What every store must do. A store is a fixture: a type with
//     static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
//                                                         Communicator& communicator, ThreadPool&
//                                                         pool);
//     static constexpr bool kManyRanks;  // false: it serves one rank alone
//     static Status look_ahead(...);     // testing::LookAhead; left out: its plans have no cache
// then
//     INSTANTIATE_TYPED_TEST_SUITE_P(Local, StoreContract, LocalFixture);
// What it shows is compared, bit for bit, with the plain store. Each batch of the stream has its
// plan.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "comm/testing/delayed_communicator.h"
#include "comm/threads.h"
#include "store/embedding_store.h"
#include "store/tables/plain_store.h"
#include "store/testing/scenario.h"

namespace recmill::store {

/// What the plain store shows of a scenario; snapshots are read at once.
inline std::unique_ptr<testing::Trace> plain_trace(const testing::Scenario& scenario) {
  auto trace = std::make_unique<testing::Trace>(scenario);
  ThreadPool pool(1);
  auto store = PlainStore::create(scenario.model, scenario.seed, pool);
  EXPECT_TRUE(store.ok()) << store.status().message();
  const Status status =
      testing::carry_out(testing::without_snapshots(scenario), **store, 0, 1, pool, *trace);
  EXPECT_TRUE(status.ok()) << status.message();
  return trace;
}

template <typename Fixture>
class StoreContract : public ::testing::Test {
 protected:
  static std::vector<int> rank_counts() {
    return Fixture::kManyRanks ? std::vector{1, 2, 3, 4, 8} : std::vector{1};
  }

  /// Those that a fixture says, where another one of its store has all.
  static std::vector<int> thread_counts() {
    if constexpr (requires { Fixture::kThreads; }) return {Fixture::kThreads};
    return {1, 2, 3};
  }

  /// With the fixture's plans of a cache, if it has any.
  static testing::Scenario with_plans(testing::Scenario scenario) {
    if constexpr (requires { &Fixture::look_ahead; }) scenario.look_ahead = &Fixture::look_ahead;
    return scenario;
  }

  // Carries `scenario` out on `ranks` threads that share `pool`, with shuffled delivery.
  static void expect_trace(const testing::Scenario& of, const testing::Trace& expected, int ranks,
                           ThreadPool& pool) {
    const testing::Scenario scenario = with_plans(of);
    testing::Trace trace(scenario);
    const Status status = run_ranks(ranks, [&](Communicator& inner) -> Status {
      DelayedCommunicator communicator(inner, scenario.seed);
      RECMILL_ASSIGN_OR_RETURN(const auto store,
                               Fixture::make(scenario.model, scenario.seed, communicator, pool));
      return testing::carry_out(scenario, *store, communicator.rank(), ranks, pool, trace);
    });
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(trace.difference(expected), "")
        << "seed " << scenario.seed << ", " << ranks << " ranks, " << pool.threads() << " threads";
  }

  static std::unique_ptr<EmbeddingStore> make(const ModelSpec& model, Communicator& communicator,
                                              ThreadPool& pool) {
    auto store = Fixture::make(model, 1, communicator, pool);
    EXPECT_TRUE(store.ok()) << store.status().message();
    return *std::move(store);
  }
};
TYPED_TEST_SUITE_P(StoreContract);

TYPED_TEST_P(StoreContract, trains_to_the_bits_of_the_plain_store_at_every_number_of_ranks) {
  const auto scenario = testing::training_scenario(31, 16);
  const auto expected = plain_trace(scenario);
  for (int ranks : this->rank_counts()) {
    ThreadPool pool(2);
    this->expect_trace(scenario, *expected, ranks, pool);
  }
}

TYPED_TEST_P(StoreContract, gives_the_same_bits_at_every_number_of_slices_and_threads) {
  auto scenario = testing::training_scenario(32, 8);
  for (int slices : {1, 2, 16}) {
    scenario.slices = slices;
    const auto expected = plain_trace(scenario);
    for (int threads : this->thread_counts()) {
      const int ranks = TypeParam::kManyRanks && threads == 3 ? std::min(slices, 5) : 1;
      ThreadPool pool(threads);
      this->expect_trace(scenario, *expected, ranks, pool);
    }
  }
}

TYPED_TEST_P(StoreContract, shows_under_random_operations_what_the_plain_store_shows) {
  for (uint64_t seed : {1, 2}) {
    const auto scenario = testing::random_scenario(seed, 24);
    const auto expected = plain_trace(scenario);
    for (int ranks : this->rank_counts()) {
      ThreadPool pool(2);
      this->expect_trace(scenario, *expected, ranks, pool);
    }
  }
}

TYPED_TEST_P(StoreContract, names_feature_sample_and_row_of_a_lookup_outside_its_table) {
  const ModelSpec model = testing::scenario_model();
  const ThreadsGroup group(1);
  const auto communicator = group.communicator(0);
  ThreadPool pool(2);
  const auto store = this->make(model, *communicator, pool);
  using Rows = std::numeric_limits<int64_t>;
  for (int64_t row : {int64_t{-1}, model.tables[2].rows, Rows::min(), Rows::max()}) {
    SparseBatch sparse = testing::random_batch(model, 5, 7, 20);
    SparseFeature& bags = sparse.features[2];
    const int64_t sample =
        std::find(bags.offsets.begin(), bags.offsets.end(), bags.offsets.back()) -
        bags.offsets.begin() - 1;  // the last that is not empty
    bags.rows.back() = row;
    ASSERT_GT(sparse.features.size(), 3u);
    for (int64_t& later : sparse.features.back().rows) later = -1;  // the first one is named
    Batch batch;
    batch.cut = {20, 1};
    batch.sparse = &sparse;
    batch.plan = std::make_shared<const StepPlan>();
    const auto prepared = store->prepare(batch);
    ASSERT_FALSE(prepared.ok());
    EXPECT_EQ(prepared.status().message(), "feature '" + model.features[2].name + "', sample " +
                                               std::to_string(sparse.first + sample) + ": row " +
                                               std::to_string(row) + " is outside table '" +
                                               model.tables[2].name + "' of " +
                                               std::to_string(model.tables[2].rows) + " rows");
  }
}

TYPED_TEST_P(StoreContract, evaluates_batches_at_the_same_time_and_changes_nothing) {
  testing::Scenario scenario{.model = testing::scenario_model(), .seed = 1, .operations = {}};
  for (int i = 0; i < 4; ++i) {
    scenario.operations.push_back({testing::Operation::Kind::evaluate, {20}, 1.0, 0});
  }
  scenario.operations.push_back({testing::Operation::Kind::read_rows, {}, 1.0, 0});
  const auto expected = plain_trace(scenario);
  const ThreadsGroup group(1);
  const auto communicator = group.communicator(0);
  ThreadPool pool(2);
  const auto store = this->make(scenario.model, *communicator, pool);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      testing::Trace trace(scenario);
      auto evaluations = scenario;
      evaluations.operations.pop_back();
      evaluations.in_stream = false;
      const Status status = testing::carry_out(evaluations, *store, 0, 1, pool, trace);
      EXPECT_TRUE(status.ok()) << status.message();
      trace.rows = expected->rows;
      EXPECT_EQ(trace.difference(*expected), "");
    });
  }
  for (auto& thread : threads) thread.join();
  testing::Trace after(scenario);
  const Status status = testing::carry_out(this->with_plans(scenario), *store, 0, 1, pool, after);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(after.difference(*expected), "");
}

TYPED_TEST_P(StoreContract, refuses_rows_that_do_not_fit_their_table) {
  const ModelSpec model = testing::scenario_model();
  const ThreadsGroup group(1);
  const auto communicator = group.communicator(0);
  ThreadPool pool(1);
  const auto store = this->make(model, *communicator, pool);
  const TableSpec& table = model.tables[3];
  const std::vector<float> weights(table.dim * 2);
  for (const RowBlock& block : {RowBlock{3, table.rows - 1, 2, weights, {}},
                                RowBlock{3, -1, 2, weights, {}}, RowBlock{3, 0, 1, weights, {}}}) {
    const Status status = store->write_rows(block);
    EXPECT_NE(status.message().find("table '" + table.name + "'"), std::string::npos)
        << status.message();
  }
  EXPECT_FALSE(store->write_rows({1000, 0, 0, {}, {}}).ok());
}

REGISTER_TYPED_TEST_SUITE_P(StoreContract,
                            trains_to_the_bits_of_the_plain_store_at_every_number_of_ranks,
                            gives_the_same_bits_at_every_number_of_slices_and_threads,
                            shows_under_random_operations_what_the_plain_store_shows,
                            names_feature_sample_and_row_of_a_lookup_outside_its_table,
                            evaluates_batches_at_the_same_time_and_changes_nothing,
                            refuses_rows_that_do_not_fit_their_table);

}  // namespace recmill::store
