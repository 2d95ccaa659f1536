// SPDX-License-Identifier: Apache-2.0
#include "store/cached/ranks/sharded_cached_store.h"

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

/// Counts calls of one communicator.
class CallCounter final : public Communicator {
 public:
  explicit CallCounter(Communicator& inner) : inner_(inner) {}
  int rank() const override { return inner_.rank(); }
  int ranks() const override { return inner_.ranks(); }
  Result<Received> all_to_all(std::span<const std::span<const std::byte>> to_rank) override {
    ++all_to_alls;
    return inner_.all_to_all(to_rank);
  }
  Result<Received> all_gather(std::span<const std::byte> bytes) override {
    return inner_.all_gather(bytes);
  }
  Status broadcast(std::span<std::byte> bytes, int root) override {
    return inner_.broadcast(bytes, root);
  }
  Status barrier() override { return inner_.barrier(); }
  Result<std::unique_ptr<Exchange>> exchange(size_t bytes) override {
    ++exchanges;
    return inner_.exchange(bytes);
  }
  bool shares_memory() const override { return inner_.shares_memory(); }
  Result<std::unique_ptr<Window>> window(size_t bytes) override { return inner_.window(bytes); }
  Result<std::unique_ptr<Communicator>> duplicate() override { return inner_.duplicate(); }
  void abort(const Status& why) override { inner_.abort(why); }
  Status failure() override { return inner_.failure(); }

  int all_to_alls = 0, exchanges = 0;

 private:
  Communicator& inner_;
};

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

/// Slots of each slot table at each rank, the fewest with which all steps can be planned.
int64_t least_slots(const testing::Scenario& scenario, CacheDesign design, int ranks,
                    int64_t lookahead, int64_t prefetch) {
  for (int64_t slots = ranks;; slots += ranks) {
    const std::string why = difference_with(scenario, design, ranks, lookahead, prefetch, slots);
    if (why.find("have to be in slots") == std::string::npos) {
      EXPECT_EQ(why, "") << slots << " slots";
      return slots;
    }
  }
}

TEST(ShardedCachedStore, keeps_the_bits_with_the_least_slots_and_with_one_more) {
  testing::Scenario scenario = testing::random_scenario(9, 12);
  scenario.model = shared_slots_model();
  scenario.model.tables.resize(8);
  std::erase_if(scenario.model.features,
                [](const FeatureSpec& feature) { return feature.table >= 8; });
  for (testing::Operation& operation : scenario.operations) operation.table %= 8;
  for (const CacheDesign design : {CacheDesign::forward, CacheDesign::lrpp}) {
    for (const int64_t prefetch : {0, 2}) {
      const int64_t least = least_slots(scenario, design, 3, 5, prefetch);
      EXPECT_GT(least, 3);
      EXPECT_EQ(difference_with(scenario, design, 3, 5, prefetch, least + 3), "");
    }
  }
}

/// Counts calls by which ranks ask each other for something.
TEST(ShardedCachedStore, asks_no_peer_for_rows) {
  testing::Scenario scenario = testing::training_scenario(3, 6);
  std::erase_if(scenario.operations, [](const testing::Operation& operation) {
    return operation.kind != testing::Operation::Kind::train;
  });
  scenario.look_ahead = [](const ModelSpec& model, int rank, auto steps, auto plans) {
    const auto size = testing::cache_of_ranks(model, CacheDesign::forward, 2, 7, 1, 600);
    return testing::look_ahead_of_rank(size, CacheDesign::forward, model, rank, steps, plans);
  };
  ThreadPool pool(2);
  testing::Trace trace(scenario);
  const Status status = run_ranks(2, [&](Communicator& inner) -> Status {
    CallCounter communicator(inner);
    ShardedOptions options;
    options.share_rows = false;
    RECMILL_ASSIGN_OR_RETURN(
        const auto store,
        testing::make_sharded_cached(scenario.model, scenario.seed, communicator, pool, options));
    RECMILL_RETURN_IF_ERROR(
        testing::carry_out(scenario, *store, communicator.rank(), 2, pool, trace));
    // A step looks rows up by one exchange and sends sums by one all_to_all.
    EXPECT_EQ(communicator.exchanges, 6);
    EXPECT_EQ(communicator.all_to_alls, 6);
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace
}  // namespace recmill::store
