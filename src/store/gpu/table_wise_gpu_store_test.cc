// SPDX-License-Identifier: Apache-2.0
// Several ranks with a GPU each: the bits of the plain store.
#include "store/gpu/table_wise_gpu_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "batch/feature_layout.h"
#include "comm/gpu/staged_gpu_exchange.h"
#include "comm/slice_tree.h"
#include "kernels/codegen/testing/test_code.h"
#include "store/gpu/gpu_memory.h"
#include "store/store_contract.h"
#include "store/tables/table_rows.h"
#include "store/testing/caller_on_gpu.h"

namespace recmill::store {
namespace {

/// Tables of two kinds, so that there are few kernels to be compiled; each looked up by three
/// features of any pooling, which are not together. One is frozen.
ModelSpec model_of(int tables) {
  ModelSpec model;
  for (int t = 0; t < tables; ++t) {
    TableSpec& table = model.tables.emplace_back();
    table.name = "t" + std::to_string(t);
    table.rows = std::array{300, 7, 50, 1}[t % 4];
    table.dim = t % 2 == 0 ? 16 : 5;
    table.precision = t % 2 == 0 ? RowPrecision::float32 : RowPrecision::bfloat16;
    table.optimizer.kind = t % 2 == 0 ? OptimizerKind::rowwise_adagrad : OptimizerKind::adam;
    table.optimizer.learning_rate = 0.02 + 0.001 * t;
    table.sharding = Sharding::table;
    table.frozen = t == 2;
  }
  for (int f = 0; f < 3 * tables; ++f) {
    FeatureSpec& feature = model.features.emplace_back();
    feature.name = "f" + std::to_string(f);
    feature.table = f % tables;
    feature.pooling = static_cast<Pooling>(f / tables);
    feature.weighted = feature.pooling == Pooling::mean;
  }
  return model;
}

testing::Scenario with_model(testing::Scenario scenario, ModelSpec model) {
  scenario.model = std::move(model);
  for (testing::Operation& operation : scenario.operations)
    operation.table %= static_cast<int>(scenario.model.tables.size());
  return scenario;
}

Result<std::vector<kernels::codegen::GpuCode>> compile(
    std::span<const kernels::codegen::GpuSource> sources) {
  static std::mutex mutex;  // ranks ask for the same code
  const std::lock_guard lock(mutex);
  return kernels::codegen::compile_for_tests(sources);
}

Result<std::unique_ptr<GpuExchange>> staged(Gpu& gpu, Communicator& hosts) {
  RECMILL_ASSIGN_OR_RETURN(auto made, StagedGpuExchange::make(gpu, hosts));
  return std::unique_ptr<GpuExchange>(std::move(made));
}

Result<std::unique_ptr<EmbeddingStore>> make_store(const ModelSpec& model, uint64_t seed,
                                                   Communicator& communicator, ThreadPool& pool,
                                                   const EmulatedGpu& emulated = {},
                                                   bool on_gpu = false) {
  auto gpu = std::make_unique<Gpu>(recmill::testing::test_driver(emulated), GpuOptions{});
  RECMILL_ASSIGN_OR_RETURN(
      auto store,
      TableWiseGpuStore::create(model, seed, std::move(gpu), {.slices = 16, .compile = &compile},
                                communicator, &staged, pool));
  if (on_gpu)
    return std::unique_ptr<EmbeddingStore>(
        std::make_unique<testing::CallerOnGpu>(model, std::move(store), pool));
  return std::unique_ptr<EmbeddingStore>(std::move(store));
}

void expect_bits_of_the_plain_store(const testing::Scenario& scenario,
                                    std::initializer_list<int> rank_counts, bool on_gpu = false) {
  const auto expected = plain_trace(scenario);
  for (const int ranks : rank_counts) {
    testing::Trace trace(scenario);
    ThreadPool pool(2);
    const Status status = run_ranks(ranks, [&](Communicator& inner) -> Status {
      DelayedCommunicator communicator(inner, scenario.seed);
      RECMILL_ASSIGN_OR_RETURN(
          const auto store,
          make_store(scenario.model, scenario.seed, communicator, pool, EmulatedGpu{}, on_gpu));
      return testing::carry_out(scenario, *store, communicator.rank(), ranks, pool, trace);
    });
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(trace.difference(*expected), "")
        << "seed " << scenario.seed << ", " << ranks << " ranks";
  }
}

TEST(TableWiseGpuStore, trains_to_the_bits_of_the_plain_store_at_every_number_of_ranks) {
  expect_bits_of_the_plain_store(with_model(testing::training_scenario(31, 8), model_of(8)),
                                 {1, 2, 3, 4});
}

TEST(TableWiseGpuStore, shows_under_random_operations_what_the_plain_store_shows) {
  expect_bits_of_the_plain_store(with_model(testing::random_scenario(1, 24), model_of(8)),
                                 {1, 2, 3, 4});
  expect_bits_of_the_plain_store(with_model(testing::random_scenario(2, 24), model_of(8)), {3});
}

TEST(TableWiseGpuStore, outputs_and_gradients_may_be_in_the_gpus_memory) {
  constexpr bool kOnGpu = true;
  expect_bits_of_the_plain_store(with_model(testing::training_scenario(33, 8), model_of(8)), {2, 4},
                                 kOnGpu);
  expect_bits_of_the_plain_store(with_model(testing::random_scenario(4, 24), model_of(8)), {1, 3},
                                 kOnGpu);
}

TEST(TableWiseGpuStore, a_rank_may_hold_no_table) {
  expect_bits_of_the_plain_store(with_model(testing::random_scenario(3, 16), model_of(2)), {4});
}

/// One rank's part of a batch that is evaluated.
struct RankPart {
  RankPart(const SparseBatch& whole, int rank, int ranks) {
    const SliceRange own = slices_of_rank(rank, ranks, kSlices);
    batch.purpose = Purpose::evaluate;
    batch.cut = {whole.samples, kSlices};
    batch.first_slice = own.begin;
    batch.end_slice = own.end;
    sparse = testing::slice(whole, batch.cut.begin(own.begin), batch.cut.begin(own.end));
    batch.sparse = &sparse;
  }
  RankPart(const RankPart&) = delete;

  /// [features][rows][dim]
  Result<std::vector<std::vector<float>>> look_up(const ModelSpec& model, EmbeddingStore& store,
                                                  Prepared& prepared, ThreadPool& pool) const {
    std::vector<std::vector<float>> rows;
    std::vector<FeatureOutput> output;
    for (size_t f = 0; f < model.features.size(); ++f) {
      const int64_t dim = model.dim_of(f);
      const auto bags = sparse.features[f].view(sparse.samples);
      rows.emplace_back(rows_out(model.features[f].pooling, bags) * dim);
      output.push_back({rows.back().data(), dim});
    }
    Stream stream(pool);
    RECMILL_RETURN_IF_ERROR(store.lookup(prepared, output, stream));
    return rows;
  }

  static constexpr int kSlices = 4;
  SparseBatch sparse;
  Batch batch;
};

/// What rank 1 fails with, where the others look up a batch as well.
Status failure_of(const ModelSpec& model, const SparseBatch& whole, const EmulatedGpu& of_rank_1) {
  ThreadPool pool(2);
  return run_ranks(3, [&](Communicator& communicator) -> Status {
    const int rank = communicator.rank();
    RECMILL_ASSIGN_OR_RETURN(const auto store, make_store(model, 1, communicator, pool,
                                                          rank == 1 ? of_rank_1 : EmulatedGpu{}));
    const RankPart part(whole, rank, 3);
    RECMILL_ASSIGN_OR_RETURN(const auto prepared, store->prepare(part.batch));
    return part.look_up(model, *store, *prepared, pool).status();
  });
}

/// What ranks look up of the last of three batches, rank after rank, where some have prepared the
/// second one and give it up.
std::vector<std::vector<float>> rows_of_last(const ModelSpec& model,
                                             const std::array<SparseBatch, 3>& batches, int ranks,
                                             int ranks_that_give_up) {
  std::vector<std::vector<std::vector<float>>> of_ranks(ranks);
  ThreadPool pool(2);
  const Status status = run_ranks(ranks, [&](Communicator& communicator) -> Status {
    const int rank = communicator.rank();
    RECMILL_ASSIGN_OR_RETURN(const auto store, make_store(model, 1, communicator, pool));
    const RankPart first(batches[0], rank, ranks), second(batches[1], rank, ranks),
        last(batches[2], rank, ranks);
    RECMILL_ASSIGN_OR_RETURN(const auto prepared, store->prepare(first.batch));
    std::unique_ptr<Prepared> given_up;
    if (rank < ranks_that_give_up) {
      RECMILL_ASSIGN_OR_RETURN(given_up, store->prepare(second.batch));
    }
    RECMILL_ASSIGN_OR_RETURN(const auto prepared_last, store->prepare(last.batch));
    RECMILL_RETURN_IF_ERROR(first.look_up(model, *store, *prepared, pool).status());
    given_up = nullptr;
    RECMILL_ASSIGN_OR_RETURN(of_ranks[rank], last.look_up(model, *store, *prepared_last, pool));
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.message();
  std::vector<std::vector<float>> rows(model.features.size());
  for (const auto& of_rank : of_ranks)
    for (size_t f = 0; f < of_rank.size(); ++f)
      rows[f].insert(rows[f].end(), of_rank[f].begin(), of_rank[f].end());
  return rows;
}

TEST(TableWiseGpuStore, batches_that_are_given_up_may_have_been_sent_ahead) {
  const ModelSpec model = model_of(4);
  const auto batch = [&](int64_t number, int64_t samples) {
    return testing::random_batch(model, 9, number, samples);
  };
  for (const int64_t samples : {20, 12}) {  // as many as the batch that comes instead, or not
    const std::array batches{batch(0, 20), batch(1, samples), batch(2, 20)};
    const auto expected = rows_of_last(model, batches, 1, 0);
    ASSERT_GT(expected[0].size(), 0u);
    for (int ranks_that_give_up = 0; ranks_that_give_up <= 3; ++ranks_that_give_up)
      EXPECT_EQ(rows_of_last(model, batches, 3, ranks_that_give_up), expected)
          << samples << " samples given up by " << ranks_that_give_up << " ranks";
  }
}

TEST(TableWiseGpuStore, names_on_all_ranks_what_one_has_outside_a_table) {
  const ModelSpec model = model_of(4);
  SparseBatch whole = testing::random_batch(model, 5, 7, 20);
  EXPECT_EQ(failure_of(model, whole, {}).message(), "");
  SparseFeature& bags = whole.features[1];  // one lookup each; rank 1 has samples 5 to 9
  ASSERT_TRUE(bags.one_each);
  bags.rows[8] = 7;
  EXPECT_EQ(failure_of(model, whole, {}).message(),
            "rank 1: feature 'f1', sample 7008: row 7 is outside table 't1' of 7 rows");
}

TEST(TableWiseGpuStore, ends_on_all_ranks_where_one_has_no_memory) {
  if (recmill::testing::on_cuda()) GTEST_SKIP() << "the GPU is what it is";
  const ModelSpec model = model_of(4);
  EmulatedGpu small;
  small.memory = 100;
  const SparseBatch whole = testing::random_batch(model, 5, 7, 20);
  const std::string why = failure_of(model, whole, small).message();
  EXPECT_EQ(why.rfind("rank 1: table t", 0), 0u) << why;
}

/// What each rank of three has taken of its GPU when it has trained three batches, all prepared
/// beforehand.
template <size_t kRanks>
std::array<int64_t, kRanks> bytes_taken(const ModelSpec& model, const SparseBatch& whole) {
  std::array<int64_t, kRanks> taken{};
  ThreadPool pool(2);
  const Status status = run_ranks(kRanks, [&](Communicator& communicator) -> Status {
    const int rank = communicator.rank();
    auto gpu = std::make_unique<Gpu>(recmill::testing::test_driver(EmulatedGpu{}), GpuOptions{});
    Gpu& of = *gpu;
    RECMILL_ASSIGN_OR_RETURN(
        const auto store,
        TableWiseGpuStore::create(model, 1, std::move(gpu), {.slices = 16, .compile = &compile},
                                  communicator, &staged, pool));
    RankPart part(whole, rank, kRanks);
    part.batch.purpose = Purpose::train;
    std::array<std::unique_ptr<Prepared>, 3> batches;
    for (auto& prepared : batches) {
      RECMILL_ASSIGN_OR_RETURN(prepared, store->prepare(part.batch));
    }
    for (auto& prepared : batches) {
      RECMILL_ASSIGN_OR_RETURN(const auto rows, part.look_up(model, *store, *prepared, pool));
      std::vector<FeatureGradient> gradient;
      for (size_t f = 0; f < rows.size(); ++f)
        gradient.push_back({rows[f].data(), model.dim_of(f)});
      Stream stream(pool);
      const Update update{prepared.get(), gradient};
      RECMILL_RETURN_IF_ERROR(store->update({&update, 1}, {0, 1.0}, stream));
      RECMILL_RETURN_IF_ERROR(store->settle());
      prepared = nullptr;
    }
    taken[rank] = of.properties().memory - of.driver().free_bytes();
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return taken;
}

// Of the batches in hand only that which is looked up and the next one take anything of a GPU.
TEST(TableWiseGpuStore, says_beforehand_how_much_memory_each_rank_takes) {
  if (recmill::testing::on_cuda()) GTEST_SKIP() << "the emulator counts bytes, a GPU whole pieces";
  constexpr int kRanks = 3;
  const ModelSpec model = model_of(4);
  const SparseBatch whole = testing::random_batch(model, 5, 7, 100);
  GpuBatches batches;
  batches.largest.samples = whole.samples;
  for (const SparseFeature& feature : whole.features)
    batches.largest.lookups.push_back(std::ssize(feature.rows));
  batches.trained = batches.largest;
  batches.slices = RankPart::kSlices;
  batches.prepared = 6;
  const auto taken = bytes_taken<kRanks>(model, whole);
  const std::vector<RowsAt> rows(model.tables.size(), GpuMemory::device);
  for (int rank = 0; rank < kRanks; ++rank) {
    int64_t need = 0, estimates = 0;
    for (const MemoryItem& item : gpu_store_need(model, batches, rows, rank, kRanks).device.items) {
      EXPECT_EQ(item.device, rank);
      (item.certain ? need : estimates) += item.bytes;
    }
    EXPECT_GE(need, taken[rank]) << rank;  // messages are staged in the hosts' memory
    // As if all lookups that are not pooled were one rank's.
    EXPECT_LE(static_cast<double>(need), 2.0 * static_cast<double>(taken[rank])) << rank;
    EXPECT_GT(estimates, 0);
  }
}

TEST(TableWiseGpuStore, rows_of_tables_that_another_rank_holds_are_not_its_own) {
  const ModelSpec model = model_of(4);
  std::mutex mutex;
  std::vector<int> holders(4, 0);
  ThreadPool pool(2);
  const Status status = run_ranks(2, [&](Communicator& communicator) -> Status {
    RECMILL_ASSIGN_OR_RETURN(const auto store, make_store(model, 1, communicator, pool));
    const MemoryLedger need = tables_need(model, 2);
    const std::lock_guard lock(mutex);
    for (int t = 0; t < 4; ++t) {
      const TableSpec& table = model.tables[t];
      const std::vector<float> weights(table.dim * table.rows);
      RECMILL_RETURN_IF_ERROR(store->write_rows({t, 0, table.rows, weights, {}}));
      const bool holds = store->extent(t).rows.size() > 0;
      holders[t] += holds ? 1 : 0;
      const auto is_its = [&](const MemoryItem& item) {
        return item.device == communicator.rank() && item.bytes > 0 &&
               item.what.rfind("table " + table.name, 0) == 0;
      };
      EXPECT_EQ(std::ranges::any_of(need.items, is_its), holds) << table.name;
    }
    EXPECT_EQ(store->write_rows({4, 0, 0, {}, {}}).message(), "there is no table 4");
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(holders, std::vector<int>(4, 1));
}

}  // namespace
}  // namespace recmill::store
