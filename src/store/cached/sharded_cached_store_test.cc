// SPDX-License-Identifier: Apache-2.0
#include "store/cached/sharded_cached_store.h"

#include <gtest/gtest.h>

#include <string>

#include "store/cached/testing/sharded_cached_fixture.h"
#include "store/store_contract.h"

namespace recmill::store {
namespace {

using Forward = testing::ShardedCachedFixture<CacheDesign::forward, 7, 1, true>;
using ForwardByMessages = testing::ShardedCachedFixture<CacheDesign::forward, 200, 4, false>;
using Lrpp = testing::ShardedCachedFixture<CacheDesign::lrpp, 7, 1, false>;
INSTANTIATE_TYPED_TEST_SUITE_P(Forward, StoreContract, Forward);
INSTANTIATE_TYPED_TEST_SUITE_P(ForwardByMessages, StoreContract, ForwardByMessages);
INSTANTIATE_TYPED_TEST_SUITE_P(Lrpp, StoreContract, Lrpp);

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

/// Whether ranks with so many slots each give the bits of the plain store; else why.
std::string difference_with(testing::Scenario scenario, CacheDesign design, int ranks,
                            int64_t lookahead, int64_t prefetch, int64_t slots,
                            bool share_rows = false) {
  const auto expected = plain_trace(scenario);
  scenario.look_ahead = [&](const ModelSpec& model, int rank, auto steps, auto plans) {
    const auto size = testing::cache_of_ranks(model, design, ranks, lookahead, prefetch, slots);
    return testing::look_ahead_of_rank(size, design, model, rank, steps, plans);
  };
  ThreadPool pool(2);
  testing::Trace trace(scenario);
  const Status status = run_ranks(ranks, [&](Communicator& inner) -> Status {
    DelayedCommunicator communicator(inner, scenario.seed);
    ShardedOptions options;
    options.share_rows = share_rows;
    RECMILL_ASSIGN_OR_RETURN(
        const auto store,
        testing::make_sharded_cached(scenario.model, scenario.seed, communicator, pool, options));
    return testing::carry_out(scenario, *store, communicator.rank(), ranks, pool, trace);
  });
  return status.ok() ? trace.difference(*expected) : status.message();
}

TEST(ShardedCachedStore, keeps_the_bits_in_every_design_and_window) {
  uint64_t seed = 20;
  for (const auto& [design, name] : EnumNames<CacheDesign>::names) {
    for (const int64_t lookahead : {0, 1, 7, 200}) {
      for (const int64_t prefetch : {0, 1, 4}) {
        testing::Scenario scenario = testing::random_scenario(++seed, 12);
        scenario.model = shared_slots_model();
        const int ranks = 2 + static_cast<int>(seed % 3);
        EXPECT_EQ(difference_with(scenario, design, ranks, lookahead, prefetch, 2500 * ranks,
                                  seed % 2 == 0),
                  "")
            << name << ", " << ranks << " ranks, L " << lookahead << ", P " << prefetch;
      }
    }
  }
}

}  // namespace
}  // namespace recmill::store
