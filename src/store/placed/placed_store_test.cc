// SPDX-License-Identifier: Apache-2.0
#include "store/placed/placed_store.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "placement_plan/testing/random_plan.h"
#include "store/store_contract.h"
#include "store/testing/late_store.h"
#include "store/testing/wandering_store.h"

namespace recmill::store {
namespace {

// By a random plan, another one for each seed and number of ranks.
Result<std::unique_ptr<PlacedStore>> place_at_random(const ModelSpec& model, uint64_t seed,
                                                     Communicator& communicator, ThreadPool& pool,
                                                     ShardedOptions options) {
  const int ranks = communicator.ranks();
  RECMILL_ASSIGN_OR_RETURN(
      auto placed,
      table::PlacedTables::create(recmill::testing::random_plan(model.tables, ranks, seed + 5),
                                  model.tables, ranks));
  return PlacedStore::create(model, seed, communicator, pool, placed, options);
}

template <CopyReduce kReduce, bool kDedup, bool kShare>
struct PlacedFixture {
  static constexpr bool kManyRanks = true;
  static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
                                                      Communicator& communicator,
                                                      ThreadPool& pool) {
    ShardedOptions options{kDedup, kReduce};
    options.share_rows = kShare;
    RECMILL_ASSIGN_OR_RETURN(auto store, place_at_random(model, seed, communicator, pool, options));
    return std::unique_ptr<EmbeddingStore>(std::move(store));
  }
};
using Sparse = PlacedFixture<CopyReduce::sparse, true, false>;
using Dense = PlacedFixture<CopyReduce::dense, true, false>;
using AllGather = PlacedFixture<CopyReduce::all_gather, true, false>;
using Automatic = PlacedFixture<CopyReduce::automatic, true, false>;
using Shared = PlacedFixture<CopyReduce::automatic, true, true>;
using SharedLookups = PlacedFixture<CopyReduce::automatic, false, true>;

INSTANTIATE_TYPED_TEST_SUITE_P(PlacedShared, StoreContract, Shared);
INSTANTIATE_TYPED_TEST_SUITE_P(PlacedSharedLookups, StoreContract, SharedLookups);
INSTANTIATE_TYPED_TEST_SUITE_P(PlacedSparse, StoreContract, Sparse);
INSTANTIATE_TYPED_TEST_SUITE_P(PlacedDense, StoreContract, Dense);
INSTANTIATE_TYPED_TEST_SUITE_P(PlacedAllGather, StoreContract, AllGather);
INSTANTIATE_TYPED_TEST_SUITE_P(PlacedAutomatic, StoreContract, Automatic);

// Without de-duplication, by every way in turn.
struct LookupsFixture {
  static constexpr bool kManyRanks = true;
  static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
                                                      Communicator& communicator,
                                                      ThreadPool& pool) {
    const auto way = (seed + static_cast<uint64_t>(communicator.ranks())) % 3;
    if (way == 0)
      return PlacedFixture<CopyReduce::sparse, false, false>::make(model, seed, communicator, pool);
    if (way == 1)
      return PlacedFixture<CopyReduce::dense, false, false>::make(model, seed, communicator, pool);
    return PlacedFixture<CopyReduce::all_gather, false, false>::make(model, seed, communicator,
                                                                     pool);
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(PlacedLookups, StoreContract, LookupsFixture);

/// From random plan to random plan.
template <bool kDedup, bool kShare>
struct WanderingFixture {
  static constexpr bool kManyRanks = true;
  static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
                                                      Communicator& communicator,
                                                      ThreadPool& pool) {
    ShardedOptions options{kDedup};
    options.share_rows = kShare;
    RECMILL_ASSIGN_OR_RETURN(auto store, place_at_random(model, seed, communicator, pool, options));
    const int ranks = communicator.ranks();
    return std::unique_ptr<EmbeddingStore>(std::make_unique<testing::WanderingStore>(
        model, ranks, std::move(store), [model, seed, ranks](int64_t iteration) {
          return recmill::testing::random_plan(model.tables, ranks,
                                               seed + static_cast<uint64_t>(iteration));
        }));
  }
};
using Wandering = WanderingFixture<true, true>;
using WanderingMessages = WanderingFixture<true, false>;
using WanderingLookups = WanderingFixture<false, false>;
INSTANTIATE_TYPED_TEST_SUITE_P(PlacedWandering, StoreContract, Wandering);
INSTANTIATE_TYPED_TEST_SUITE_P(PlacedWanderingMessages, StoreContract, WanderingMessages);
INSTANTIATE_TYPED_TEST_SUITE_P(PlacedWanderingLookups, StoreContract, WanderingLookups);

/// Updates come as late as they may.
struct LatePlacedFixture {
  static constexpr bool kManyRanks = true;
  static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
                                                      Communicator& communicator,
                                                      ThreadPool& pool) {
    RECMILL_ASSIGN_OR_RETURN(auto store, place_at_random(model, seed, communicator, pool, {}));
    return std::unique_ptr<EmbeddingStore>(
        std::make_unique<testing::LateStore>(model, std::move(store), communicator));
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(PlacedLate, StoreContract, LatePlacedFixture);

/// Carries a scenario out, and compares with the plain store. Ranks are of one host, or as if on
/// hosts of their own.
void expect_plain(const testing::Scenario& scenario, int ranks, const PlacementPlan& plan,
                  ShardedOptions options, bool one_host = false) {
  const auto expected = plain_trace(scenario);
  const auto placed = table::PlacedTables::create(plan, scenario.model.tables, ranks);
  ASSERT_TRUE(placed.ok()) << placed.status().message();
  ThreadPool pool(2);
  testing::Trace trace(scenario);
  const Status status = run_ranks(ranks, [&](Communicator& inner) -> Status {
    DelayedCommunicator communicator(inner, scenario.seed, /*shares_memory=*/one_host);
    RECMILL_ASSIGN_OR_RETURN(
        const auto store,
        PlacedStore::create(scenario.model, scenario.seed, communicator, pool, *placed, options));
    return testing::carry_out(scenario, *store, communicator.rank(), ranks, pool, trace);
  });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(trace.difference(*expected), "") << ranks << " ranks";
}

constexpr ShardedOptions kAllOptions[] = {{true, CopyReduce::sparse},
                                          {true, CopyReduce::dense},
                                          {true, CopyReduce::all_gather},
                                          {true, CopyReduce::automatic},
                                          {false, CopyReduce::sparse},
                                          {false, CopyReduce::dense},
                                          {false, CopyReduce::all_gather},
                                          {false, CopyReduce::automatic},
                                          {true, CopyReduce::automatic, /*one_call=*/false},
                                          {true, CopyReduce::automatic, true, /*overlap=*/false},
                                          {false, CopyReduce::automatic, false, false}};

TEST(PlacedStore, trains_with_every_row_everywhere_to_the_bits_of_the_plain_store) {
  const auto scenario = testing::training_scenario(36, 4);
  PlacementPlan plan{"test", 3, {}, {}};
  for (const TableSpec& table : scenario.model.tables)
    plan.tables.push_back({table.name,
                           table.rows,
                           table.dim,
                           {},
                           {{table.rows, plan.path(FetchPath::everywhere(
                                             static_cast<int>(plan.tables.size() % 3), 3))}},
                           {},
                           {}});
  for (const ShardedOptions& options : kAllOptions) expect_plain(scenario, 3, plan, options);
  for (const ShardedOptions& options : kAllOptions) expect_plain(scenario, 3, plan, options, true);
}

/// Rows of one and of many groups of columns.
testing::Scenario wide_scenario() {
  auto scenario = testing::training_scenario(37, 8);
  constexpr int64_t kDims[] = {15, 16, 17, 40, 200};
  for (size_t t = 0; t < scenario.model.tables.size(); ++t)
    scenario.model.tables[t].dim = kDims[t % 5];
  return scenario;
}

TEST(PlacedStore, trains_columns_at_any_ranks_beside_rows_to_the_bits_of_the_plain_store) {
  const auto scenario = wide_scenario();
  for (const int ranks : {2, 4}) {
    const auto plan = recmill::testing::random_plan(scenario.model.tables, ranks, 3);
    int64_t split = 0;
    for (const auto& table : plan.tables) split += table.column_devices.size() > 1 ? 1 : 0;
    EXPECT_GT(split, 1);
    for (const bool one_host : {false, true})
      for (const ShardedOptions& options : kAllOptions)
        expect_plain(scenario, ranks, plan, options, one_host);
  }
}

/// Bytes that rank 0 of two gets in lookup() of one table of 10 rows, half of them at rank 1, by 12
/// lookups of 3 rows there and 1 here.
uint64_t bytes_of_lookup(bool has_copies, bool dedup, bool share_rows = false) {
  ModelSpec model;
  model.tables.push_back({.name = "t", .rows = 10, .dim = 16, .optimizer = {}});
  model.features.push_back({.name = "f", .table = 0});
  PlacementPlan plan{"test", 2, {}, {}};
  const int at1 = plan.path(has_copies ? FetchPath::everywhere(1, 2) : FetchPath::at(1, 2));
  plan.tables.push_back(
      {"t", 10, 16, {}, {{5, plan.path(FetchPath::at(0, 2))}, {10, at1}}, {}, {}});
  const auto placed = table::PlacedTables::create(plan, model.tables, 2);
  uint64_t bytes = 0;
  const Status status = run_ranks(2, [&](Communicator& communicator) -> Status {
    ThreadPool pool(1);
    ShardedOptions options{dedup};
    options.share_rows = share_rows;
    RECMILL_ASSIGN_OR_RETURN(const auto store,
                             PlacedStore::create(model, 1, communicator, pool, *placed, options));
    SparseBatch sparse;
    sparse.samples = 2;
    sparse.features.push_back({{0, 6, 12}, {5, 6, 7, 1, 5, 5, 6, 7, 7, 1, 6, 7}, {}, false});
    Batch batch;
    batch.cut = {4, 2};
    batch.first_slice = communicator.rank();
    batch.end_slice = communicator.rank() + 1;
    batch.sparse = &sparse;
    RECMILL_ASSIGN_OR_RETURN(const auto prepared, store->prepare(batch));
    std::vector<float> out(32);
    const FeatureOutput output{out.data(), 16};
    Stream stream(pool);
    const uint64_t before = communicator.traffic().received;
    RECMILL_RETURN_IF_ERROR(store->lookup(*prepared, {&output, 1}, stream));
    if (communicator.rank() == 0) bytes = communicator.traffic().received - before;
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return bytes;
}

TEST(PlacedStore, fetches_each_row_once_or_each_lookup_and_none_that_has_a_copy_here) {
  constexpr uint64_t kRow = 16 * 4, kAsked = 8, kEmpty = 3 * 8;  // of a request: ends, and a note
  // Of rank 1 row 1 is asked for.
  EXPECT_EQ(bytes_of_lookup(false, true), 3 * kRow + kEmpty + 1 * kAsked);
  EXPECT_EQ(bytes_of_lookup(false, false), 10 * kRow + kEmpty + 2 * kAsked);
  EXPECT_EQ(bytes_of_lookup(true, true), kEmpty + 1 * kAsked);
  EXPECT_EQ(bytes_of_lookup(false, true, /*share_rows=*/true), 0u);
}

TEST(PlacedStore, refuses_at_all_ranks_rows_that_the_host_has_no_room_for) {
  ModelSpec model;
  constexpr int64_t kRows = int64_t{1} << 42;
  model.tables.push_back({.name = "t", .rows = kRows, .dim = 16, .optimizer = {}});
  PlacementPlan plan{"test", 2, {}, {}};
  plan.tables.push_back(
      {"t",
       kRows,
       16,
       {},
       {{kRows / 2, plan.path(FetchPath::at(0, 2))}, {kRows, plan.path(FetchPath::at(1, 2))}},
       {},
       {}});
  const auto placed = table::PlacedTables::create(plan, model.tables, 2);
  std::array<std::string, 2> messages;
  const Status status = run_ranks(2, [&](Communicator& communicator) -> Status {
    ThreadPool pool(1);
    const auto store = PlacedStore::create(model, 1, communicator, pool, *placed);
    messages[communicator.rank()] = store.status().message();
    return store.status();
  });
  for (const std::string& message : messages)
    EXPECT_NE(message.find("table t: cannot allocate "), std::string::npos) << message;
}

TEST(PlacedStore, moves_columns_of_any_width_to_the_bits_of_the_plain_store) {
  const auto scenario = wide_scenario();
  const auto expected = plain_trace(scenario);
  for (const int ranks : {2, 4}) {
    ThreadPool pool(2);
    testing::Trace trace(scenario);
    const Status status = run_ranks(ranks, [&](Communicator& communicator) -> Status {
      RECMILL_ASSIGN_OR_RETURN(const auto store,
                               Wandering::make(scenario.model, scenario.seed, communicator, pool));
      return testing::carry_out(scenario, *store, communicator.rank(), ranks, pool, trace);
    });
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(trace.difference(*expected), "") << ranks << " ranks";
  }
}

TEST(PlacedStore, tells_what_went_between_ranks_when_the_plan_changed) {
  ModelSpec model;
  model.tables.push_back({.name = "t", .rows = 10, .dim = 16, .optimizer = {}});
  model.tables[0].optimizer.kind = OptimizerKind::rowwise_adagrad;
  model.features.push_back({.name = "f", .table = 0});
  PlacementPlan plan{"test", 2, {}, {}};
  const int at0 = plan.path(FetchPath::at(0, 2)), at1 = plan.path(FetchPath::at(1, 2));
  const int all = plan.path(FetchPath::everywhere(0, 2));
  plan.tables.push_back({"t", 10, 16, {}, {{5, at0}, {10, at1}}, {}, {}});
  PlacementPlan other = plan;
  other.tables[0].runs = {{2, all}, {6, at0}, {10, at1}};  // rows 0 and 1 to rank 1, 5 to rank 0
  const auto before = table::PlacedTables::create(plan, model.tables, 2);
  const auto after = table::PlacedTables::create(other, model.tables, 2);
  const Status status = run_ranks(2, [&](Communicator& communicator) -> Status {
    ThreadPool pool(1);
    RECMILL_ASSIGN_OR_RETURN(const auto store,
                             PlacedStore::create(model, 1, communicator, pool, *before));
    RECMILL_RETURN_IF_ERROR(store->place_from(1, *after));
    SparseBatch sparse;
    sparse.features.push_back({{0}, {}, {}, false});
    Batch batch;
    batch.cut = {0, 2};
    batch.first_slice = communicator.rank();
    batch.end_slice = communicator.rank() + 1;
    batch.sparse = &sparse;
    Stream stream(pool);
    const FeatureOutput output{nullptr, 16};
    for (batch.iteration = 0; batch.iteration < 2; ++batch.iteration) {
      RECMILL_ASSIGN_OR_RETURN(const auto prepared, store->prepare(batch));
      EXPECT_TRUE(store->is_moving());
      RECMILL_RETURN_IF_ERROR(store->lookup(*prepared, {&output, 1}, stream));
      EXPECT_EQ(store->is_moving(), batch.iteration == 0);
    }
    EXPECT_EQ(store->moved().rows, 3);
    EXPECT_EQ(store->moved().bytes, 3 * (16 + 1) * 4);
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(PlacedStore, needs_what_the_plan_puts_on_each_device_copies_included) {
  ModelSpec model;
  model.tables.push_back({.name = "t", .rows = 1000, .dim = 4, .optimizer = {}});
  model.tables[0].optimizer.kind = OptimizerKind::sgd;
  PlacementPlan plan{"test", 2, {}, {}};
  const int at0 = plan.path(FetchPath::at(0, 2)), at1 = plan.path(FetchPath::at(1, 2));
  const int all = plan.path(FetchPath::everywhere(0, 2));
  plan.tables.push_back({"t", 1000, 4, {}, {{700, at0}, {900, at1}, {1000, all}}, {5}, {all}});
  const auto placed = table::PlacedTables::create(plan, model.tables, 2);
  ASSERT_TRUE(placed.ok());
  const MemoryLedger ledger = placed_need(model, **placed, {true, CopyReduce::sparse});
  EXPECT_EQ(ledger.total(0), 800 * 16);
  EXPECT_EQ(ledger.total(1), 301 * 16);
  const MemoryLedger dense = placed_need(model, **placed, {true, CopyReduce::dense});
  EXPECT_EQ(dense.total(1), 301 * 16 + 101 * (2 * 5 * 4 + 8));
}

}  // namespace
}  // namespace recmill::store
