// SPDX-License-Identifier: Apache-2.0
#include "store/cached/cached_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "lookahead/batch_rows.h"
#include "lookahead/cache_planner.h"
#include "store/store_contract.h"
#include "store/tables/table_rows.h"
#include "table/home/embedded_home.h"
#include "table/home/testing/late_home.h"

namespace recmill::store {
namespace {

/// Plans all steps of a scenario.
Status look_ahead(const lookahead::CacheOptions& options, const ModelSpec& model,
                  std::span<const std::vector<const SparseBatch*>> steps,
                  std::span<StepPlan> plans) {
  const SlotTables tables(model);
  lookahead::CachePlanner planner(tables, CachedStore::slot_bytes(model, tables), options);
  lookahead::BatchRows finder(model);
  ThreadPool pool(1);
  for (const auto& batches : steps) {
    std::set<int64_t> rows;
    for (const SparseBatch* batch : batches) {
      std::vector<int64_t> some;
      finder.find(*batch, 0, batch->samples, pool, some);
      rows.insert(some.begin(), some.end());
    }
    planner.see({rows.begin(), rows.end()}, 0);
  }
  planner.end();
  for (StepPlan& plan : plans) {
    RECMILL_ASSIGN_OR_RETURN(plan.lookahead, planner.next());
    plan.cache = std::make_shared<const CacheSize>(planner.size());
  }
  return {};
}

constexpr int64_t kPlenty = int64_t{1} << 30;  // bytes

template <bool kLate>
Result<std::unique_ptr<EmbeddingStore>> make_cached(const ModelSpec& model, uint64_t seed,
                                                    ThreadPool& pool) {
  RECMILL_ASSIGN_OR_RETURN(auto tables, create_tables(model, seed, 0, 1, pool));
  std::shared_ptr<table::RowHome> home = table::make_embedded_home(std::move(tables), pool);
  if (kLate) {
    struct Late {
      Late(std::shared_ptr<table::RowHome> of, uint64_t seed_of)
          : inner(std::move(of)), late(*inner, seed_of) {}
      std::shared_ptr<table::RowHome> inner;
      table::testing::LateHome late;
    };
    auto late = std::make_shared<Late>(std::move(home), seed);
    home = {late, &late->late};
  }
  return std::unique_ptr<EmbeddingStore>(
      std::make_unique<CachedStore>(model, seed, std::move(home), pool, StoreKernels{}));
}

template <int64_t kLookahead, int64_t kPrefetch, bool kLate>
struct CachedFixture {
  static constexpr bool kManyRanks = false;
  static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
                                                      Communicator&, ThreadPool& pool) {
    return make_cached<kLate>(model, seed, pool);
  }
  static Status look_ahead(const ModelSpec& model,
                           std::span<const std::vector<const SparseBatch*>> steps,
                           std::span<StepPlan> plans) {
    return store::look_ahead({.lookahead = kLookahead, .prefetch = kPrefetch, .cache = kPlenty},
                             model, steps, plans);
  }
};
using NoLookahead = CachedFixture<0, 0, false>;
using Lookahead = CachedFixture<7, 1, false>;
using LateHome = CachedFixture<3, 2, true>;
INSTANTIATE_TYPED_TEST_SUITE_P(NoLookahead, StoreContract, NoLookahead);
INSTANTIATE_TYPED_TEST_SUITE_P(Lookahead, StoreContract, Lookahead);
INSTANTIATE_TYPED_TEST_SUITE_P(OverLateHome, StoreContract, LateHome);

/// Few slot tables, of many tables each: in every precision.
ModelSpec shared_slots_model() {
  ModelSpec model = testing::scenario_model();
  for (TableSpec& table : model.tables) {
    table.optimizer = {};
    table.optimizer.kind = OptimizerKind::adam;
    table.dim = 8;
  }
  return model;
}

/// Whether training a scenario with the bytes of cache gives the bits of the plain store; else why.
std::string difference_with(testing::Scenario scenario, const lookahead::CacheOptions& options) {
  const auto expected = plain_trace(scenario);
  scenario.look_ahead = [&](const ModelSpec& model, auto steps, auto plans) {
    return look_ahead(options, model, steps, plans);
  };
  ThreadPool pool(2);
  auto store = make_cached<true>(scenario.model, scenario.seed, pool);
  if (!store.ok()) return store.status().message();
  testing::Trace trace(scenario);
  const Status status = testing::carry_out(scenario, **store, 0, 1, pool, trace);
  return status.ok() ? trace.difference(*expected) : status.message();
}

TEST(CachedStore, keeps_the_bits_with_the_least_slots_and_with_one_more) {
  testing::Scenario scenario = testing::random_scenario(9, 30);
  scenario.model = shared_slots_model();
  for (const int64_t lookahead : {1, 200}) {
    for (const int64_t prefetch : {0, 1, 4}) {
      // What a refusal names is enough, and a byte less is not.
      lookahead::CacheOptions options{.lookahead = lookahead, .prefetch = prefetch, .cache = 1};
      std::string refusal = difference_with(scenario, options);
      int64_t tries = 0;
      for (; refusal.find("needs at least ") != std::string::npos; ++tries) {
        const auto at = refusal.find("needs at least ") + 15;
        options.cache = std::stoll(refusal.substr(at));
        refusal = difference_with(scenario, options);
      }
      EXPECT_EQ(refusal, "") << "L " << lookahead << ", P " << prefetch;
      EXPECT_GT(tries, 0);
      *options.cache -= 1;
      EXPECT_NE(difference_with(scenario, options).find("needs at least "), std::string::npos);
      *options.cache += 1 + CachedStore::slot_bytes(scenario.model, SlotTables(scenario.model))[0];
      EXPECT_EQ(difference_with(scenario, options), "");
    }
  }
}

}  // namespace
}  // namespace recmill::store
