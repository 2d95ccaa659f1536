// SPDX-License-Identifier: Apache-2.0
#include "store/table_store.h"

#include <gtest/gtest.h>

#include <map>

#include "store/store_contract.h"
#include "store/tables/table_rows.h"

namespace recmill::store {
namespace {

struct TableFixture {
  static constexpr bool kManyRanks = true;
  static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
                                                      Communicator& communicator,
                                                      ThreadPool& pool) {
    return create_table_store(model, seed, communicator, pool);
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Hashed, StoreContract, TableFixture);

// A schedule for all tables. Several ranks run a part of that of distinct rows alone.
template <size_t kTemplate>
struct ScheduledFixture {
  static constexpr bool kManyRanks = kTemplate == 0;
  static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
                                                      Communicator& communicator,
                                                      ThreadPool& pool) {
    const auto& of = kernels::row_update_templates()[kTemplate];
    std::vector<kernels::RowUpdateKernel> row_update;
    for (size_t t = 0; t < model.tables.size(); ++t) {
      row_update.push_back({&of, {}});  // the first values of its parameters, or the last
      for (const auto& tunable : of.spec.tunables)
        row_update[t].values.push_back(t % 2 == 0 ? tunable.values.front() : tunable.values.back());
    }
    StoreKernels kernels;
    kernels.row_update = std::move(row_update);
    return create_table_store(model, seed, communicator, pool, std::move(kernels));
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(DistinctRows, StoreContract, ScheduledFixture<0>);
INSTANTIATE_TYPED_TEST_SUITE_P(DenseSums, StoreContract, ScheduledFixture<1>);
INSTANTIATE_TYPED_TEST_SUITE_P(PlacedSums, StoreContract, ScheduledFixture<2>);

// Pooling schedules of every template, another one for each feature.
struct PooledFixture {
  static constexpr bool kManyRanks = true;
  static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
                                                      Communicator& communicator,
                                                      ThreadPool& pool) {
    StoreKernels kernels;
    kernels.tile = 3;
    for (size_t f = 0; f < model.features.size(); ++f) {
      kernels::FeatureShape shape;
      const TableSpec& table = model.tables[model.features[f].table];
      shape.rows = table.rows;
      shape.dim = table.dim;
      shape.pooling = model.features[f].pooling;
      if (f % 3 != 0) shape.bags.longest = 1000;  // else as of one lookup each, which it may not be
      std::vector<kernels::Schedule> all;
      for (const auto& of : kernels::pool_templates()) {
        if (of.order == kernels::Order::reorders) continue;
        for (auto& schedule : kernels::candidates(of, shape, {}))
          all.push_back(std::move(schedule));
      }
      const kernels::Schedule& schedule = all[(f * 37 + seed) % all.size()];
      RECMILL_ASSIGN_OR_RETURN(auto kernel, kernels::find_pool_kernel(schedule));
      kernels.pool.push_back(std::move(kernel));
    }
    return create_table_store(model, seed, communicator, pool, std::move(kernels));
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Pooled, StoreContract, PooledFixture);

// Every table split over the ranks in one way.
template <Sharding kSharding>
struct ShardedFixture {
  static constexpr bool kManyRanks = true;
  static Result<std::unique_ptr<EmbeddingStore>> make(ModelSpec model, uint64_t seed,
                                                      Communicator& communicator,
                                                      ThreadPool& pool) {
    for (TableSpec& table : model.tables) table.sharding = kSharding;
    return TableFixture::make(model, seed, communicator, pool);
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(WholeTables, StoreContract, ShardedFixture<Sharding::table>);
INSTANTIATE_TYPED_TEST_SUITE_P(RowRanges, StoreContract, ShardedFixture<Sharding::row_range>);
INSTANTIATE_TYPED_TEST_SUITE_P(Columns, StoreContract, ShardedFixture<Sharding::column>);

// One table after the other in another way.
struct MixedFixture {
  static constexpr bool kManyRanks = true;
  static Result<std::unique_ptr<EmbeddingStore>> make(ModelSpec model, uint64_t seed,
                                                      Communicator& communicator,
                                                      ThreadPool& pool) {
    constexpr auto& kNames = EnumNames<Sharding>::names;
    for (size_t t = 0; t < model.tables.size(); ++t)
      model.tables[t].sharding = kNames[t % kNames.size()].first;
    return TableFixture::make(model, seed, communicator, pool);
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Mixed, StoreContract, MixedFixture);

// Rows of one group of columns, of a group and a bit, of many, in every way that they are kept.
ModelSpec model_of_wide_rows() {
  ModelSpec model = testing::scenario_model();
  constexpr int64_t kDims[] = {15, 16, 17, 40, 200};
  for (size_t t = 0; t < model.tables.size(); ++t) model.tables[t].dim = kDims[t % 5];
  return model;
}

TEST(TableStore, trains_split_columns_to_the_bits_of_whole_rows) {
  auto scenario = testing::training_scenario(35, 6);
  scenario.model = model_of_wide_rows();
  const auto expected = plain_trace(scenario);
  for (const int ranks : {1, 2, 3, 4, 8}) {
    ThreadPool pool(2);
    testing::Trace trace(scenario);
    const Status status = run_ranks(ranks, [&](Communicator& communicator) -> Status {
      RECMILL_ASSIGN_OR_RETURN(const auto store,
                               ShardedFixture<Sharding::column>::make(scenario.model, scenario.seed,
                                                                      communicator, pool));
      return testing::carry_out(scenario, *store, communicator.rank(), ranks, pool, trace);
    });
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(trace.difference(*expected), "") << ranks << " ranks";
  }
}

TEST(ScheduledFixture, is_there_for_every_template) {
  EXPECT_EQ(kernels::row_update_templates().size(), 3u);
}

TEST(Scenario, has_operations_of_every_kind_and_updates_of_several_batches) {
  std::map<testing::Operation::Kind, int> kinds;
  int several = 0;
  for (uint64_t seed : {1, 2}) {
    for (const auto& operation : testing::random_scenario(seed, 24).operations) {
      ++kinds[operation.kind];
      several += operation.kind == testing::Operation::Kind::train && operation.batches.size() > 1;
    }
  }
  EXPECT_EQ(kinds.size(), 6u);
  EXPECT_GE(several, 2);
}

TEST(TableStore, needs_every_byte_of_its_rows_and_state_and_no_other) {
  constexpr int kRanks = 3;
  ModelSpec model = testing::scenario_model();
  for (size_t t = 0; t < model.tables.size(); ++t)
    model.tables[t].sharding = EnumNames<Sharding>::names[t / 4 % 4].first;
  const Status status = run_ranks(kRanks, [&](Communicator& communicator) -> Status {
    ThreadPool pool(1);
    RECMILL_ASSIGN_OR_RETURN(const auto store, create_table_store(model, 1, communicator, pool));
    int64_t bytes = 0;
    RECMILL_RETURN_IF_ERROR(store->read_rows([&](const RowBlock& block) -> Status {
      const TableSpec& table = model.tables[block.table];
      int64_t record = block.columns.count * kernels::bytes_of(table.precision);
      const auto& optimizer = table.optimizer;
      auto columns = static_cast<int64_t>(block.state.size());
      if (columns > 0 && (optimizer.kind == OptimizerKind::rowwise_adagrad ||
                          (optimizer.kind == OptimizerKind::adam &&
                           optimizer.correction == BiasCorrection::row))) {
        --columns;
        bytes += block.count * 4;  // by row: whoever has some columns has a copy
      }
      if (columns > 0) record = (record + 3) / 4 * 4;  // float32 is behind the weights
      bytes += block.count * (record + columns * block.columns.count * 4);
      return {};
    }));
    EXPECT_EQ(tables_need(model, kRanks).total(communicator.rank()), bytes);
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(TableStore, ends_the_lookup_of_other_ranks_with_the_error_of_the_one_that_failed) {
  const ModelSpec model = testing::scenario_model();
  const Status status = run_ranks(3, [&](Communicator& communicator) -> Status {
    ThreadPool pool(1);
    RECMILL_ASSIGN_OR_RETURN(const auto store, create_table_store(model, 1, communicator, pool));
    if (communicator.rank() == 2) return Status::Failed("part-7.tsv:12: 39 columns");
    const SliceRange own = slices_of_rank(communicator.rank(), 3, 8);
    const SparseBatch sparse = testing::random_batch(model, 1, 0, own.size());
    Batch batch;
    batch.cut = {8, 8};
    batch.first_slice = own.begin;
    batch.end_slice = own.end;
    batch.sparse = &sparse;
    RECMILL_ASSIGN_OR_RETURN(const auto prepared, store->prepare(batch));
    Stream stream(pool);
    const Status looked_up = store->lookup(*prepared, {}, stream);
    EXPECT_EQ(looked_up.message(), "rank 2: part-7.tsv:12: 39 columns");
    return looked_up;
  });
  EXPECT_EQ(status.message(), "rank 2: part-7.tsv:12: 39 columns");
}

TEST(TableStore, counts_lookups_distinct_rows_and_updates) {
  ModelSpec model;
  model.tables.push_back({.name = "t", .rows = 10, .dim = 4, .optimizer = {}});
  model.features.push_back({.name = "f", .table = 0});
  SparseBatch sparse;
  sparse.samples = 2;
  sparse.features.push_back({{0, 3, 4}, {5, 5, 1, 5}, {}, false});
  const ThreadsGroup group(1);
  const auto communicator = group.communicator(0);
  ThreadPool pool(1);
  const auto store = create_table_store(model, 1, *communicator, pool);
  ASSERT_TRUE(store.ok());
  Batch batch;
  batch.cut = {2, 1};
  batch.sparse = &sparse;
  auto prepared = (*store)->prepare(batch);
  ASSERT_TRUE(prepared.ok());
  std::vector<float> out(8), gradient(8, 1.0f);
  const FeatureOutput output{out.data(), 4};
  const FeatureGradient feature_gradient{gradient.data(), 4};
  Stream stream(pool);
  ASSERT_TRUE((*store)->lookup(**prepared, {&output, 1}, stream).ok());
  const Update update{prepared->get(), {&feature_gradient, 1}};
  ASSERT_TRUE((*store)->update({&update, 1}, {}, stream).ok());
  const StoreStats stats = (*store)->stats();
  EXPECT_EQ(stats.lookups, 4);
  EXPECT_EQ(stats.distinct_rows, 2);
  EXPECT_EQ(stats.updated_rows, 2);
}

}  // namespace
}  // namespace recmill::store
