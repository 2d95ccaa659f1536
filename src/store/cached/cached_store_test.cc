// SPDX-License-Identifier: Apache-2.0
#include "store/cached/cached_store.h"

#include <gtest/gtest.h>

#include <string>

#include "store/cached/testing/cached_fixture.h"
#include "store/store_contract.h"

namespace recmill::store {
namespace {

using testing::look_ahead;
using testing::make_cached;
using NoLookahead = testing::CachedFixture<0, 0, false>;
using Lookahead = testing::CachedFixture<7, 1, false>;
using LateHome = testing::CachedFixture<3, 2, true>;
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
  scenario.look_ahead = [&](const ModelSpec& model, int, auto steps, auto plans) {
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
      *options.cache +=
          1 + HostSlotStore::slot_bytes(scenario.model, SlotTables(scenario.model))[0];
      EXPECT_EQ(difference_with(scenario, options), "");
    }
  }
}

}  // namespace
}  // namespace recmill::store
