// SPDX-License-Identifier: Apache-2.0
// Tables of which a GPU's memory has the hot rows and the host's the others: what every store must
// do, the bits of the plain one, the memory that it takes, and what it counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "comm/gpu/staged_gpu_exchange.h"
#include "kernels/codegen/testing/test_code.h"
#include "store/gpu/gpu_memory.h"
#include "store/gpu/gpu_store.h"
#include "store/gpu/table_wise_gpu_store.h"
#include "store/store_contract.h"
#include "store/testing/rows_on_gpu.h"

namespace recmill::store {
namespace {

using kernels::codegen::compile_for_tests;

/// Of one table in seven no rows, of another all, of the others some, rows at both ends among them.
HotSet odd_hot_set(const ModelSpec& model) {
  HotSet set;
  set.cutoff = 1;
  for (size_t t = 0; t < model.tables.size(); ++t) {
    HotTable& table = set.tables.emplace_back();
    table.table = model.tables[t].name;
    table.rows = model.tables[t].rows;
    table.all_hot = t % 7 == 5;
    if (t % 7 == 3 || table.all_hot) continue;
    const auto number = static_cast<int64_t>(t);
    for (int64_t row = 0; row < table.rows; ++row)
      if ((row * 7 + number) % 5 < 2 || row == table.rows - 1 - number % 2)
        table.hot_rows.push_back(row);
  }
  EXPECT_TRUE(check_hot_set(set, model.tables).ok());
  return set;
}

std::shared_ptr<Gpu> gpu_for(uint64_t seed, GpuOptions options = {}) {
  EmulatedGpu of;
  of.turns.order = seed % 2 == 0 ? emulation::Order::reverse : emulation::Order::forward;
  return std::make_shared<Gpu>(recmill::testing::test_driver(of), options);
}

Result<std::unique_ptr<GpuStore>> make_hot_store(const ModelSpec& model, uint64_t seed,
                                                 ThreadPool& pool, GpuOptions options = {}) {
  return GpuStore::create(model, seed, gpu_for(seed, options),
                          {.slices = 16, .compile = &compile_for_tests}, pool,
                          rows_by_hot_set(odd_hot_set(model)));
}

struct HotFixture {
  static constexpr bool kManyRanks = false;
  static constexpr int kThreads = 2;  // GpuFixture has all
  static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
                                                      Communicator&, ThreadPool& pool) {
    RECMILL_ASSIGN_OR_RETURN(auto store, make_hot_store(model, seed, pool));
    return std::unique_ptr<EmbeddingStore>(std::move(store));
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Hot, StoreContract, HotFixture);

TEST(HotRows, OddSetsHaveTablesOfOneMemoryAndOfTwo) {
  const auto rows = rows_by_hot_set(odd_hot_set(testing::scenario_model()));
  const auto count = [&](const auto& is) { return std::ranges::count_if(rows, is); };
  EXPECT_GE(count([](const RowsAt& at) { return at.near != nullptr; }), 12);
  EXPECT_GE(count([](const RowsAt& at) { return at.memory == GpuMemory::device; }), 2);
  EXPECT_GE(
      count([](const RowsAt& at) { return at.memory == GpuMemory::host && at.near == nullptr; }),
      2);
}

/// Snapshots that are read while later updates change rows, and rows that are written.
testing::Scenario all_ways() {
  auto scenario = testing::training_scenario(/*seed=*/3, /*count=*/4);
  using Kind = testing::Operation::Kind;
  for (int table = 0; table < 8; ++table)
    scenario.operations.insert(scenario.operations.end() - 1, {Kind::write_rows, {}, 1.0, table});
  scenario.operations.insert(scenario.operations.end() - 1, {Kind::evaluate, {20}, 1.0, 0});
  scenario.operations.insert(scenario.operations.end() - 1, {Kind::train, {20, 9}, 1.0, 0});
  return scenario;
}

/// What is counted of a scenario's updates.
struct Counts {
  int64_t lookups = 0, rows = 0;
  bool operator==(const Counts&) const = default;
};
Counts counts_of(const testing::Scenario& scenario) {
  const auto places = rows_by_hot_set(odd_hot_set(scenario.model));
  Counts counts;
  for (size_t o = 0; o < scenario.operations.size(); ++o) {
    const testing::Operation& operation = scenario.operations[o];
    if (operation.kind != testing::Operation::Kind::train) continue;
    std::set<std::pair<int, int64_t>> updated;
    for (size_t b = 0; b < operation.batches.size(); ++b) {
      const SparseBatch batch = testing::random_batch(
          scenario.model, scenario.seed, testing::number_of_batch(o, b), operation.batches[b]);
      for (size_t f = 0; f < batch.features.size(); ++f) {
        const int table = scenario.model.features[f].table;
        const RowsAt& at = places[table];
        for (const int64_t row : batch.features[f].rows) {
          if (at.memory == GpuMemory::device || (at.near != nullptr && at.near->is_near(row)))
            continue;
          ++counts.lookups;
          if (!scenario.model.tables[table].frozen) updated.insert({table, row});
        }
      }
    }
    counts.rows += std::ssize(updated);
  }
  return counts;
}

void expect_bits_and_counts(const testing::Scenario& scenario, EmbeddingStore& store) {
  const auto expected = plain_trace(scenario);
  ThreadPool pool(2);
  testing::Trace trace(scenario);
  const Status status = testing::carry_out(scenario, store, 0, 1, pool, trace);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(trace.difference(*expected), "");
  const StoreStats stats = store.stats();
  EXPECT_EQ((Counts{stats.far.lookups, stats.far.rows}), counts_of(scenario));
}

TEST(HotRows, HaveTheBitsOfThePlainStoreAndFarOnesAreCounted) {
  const auto scenario = all_ways();
  ThreadPool pool(2);
  const auto store = make_hot_store(scenario.model, scenario.seed, pool);
  ASSERT_TRUE(store.ok()) << store.status().message();
  expect_bits_and_counts(scenario, **store);
}

TEST(HotRows, MayBeMadeOnTheGpu) {
  const auto scenario = all_ways();
  ThreadPool pool(2);
  auto made = make_hot_store(scenario.model, scenario.seed, pool);
  ASSERT_TRUE(made.ok()) << made.status().message();
  testing::RowsOnGpu store(*std::move(made));
  expect_bits_and_counts(scenario, store);
}

TEST(HotRows, ANaNIsNamedByItsRow) {
  testing::Scenario scenario{testing::scenario_model(), /*seed=*/3, /*slices=*/8, {}};
  scenario.operations = {{.batches = {20}, .learning_rate_scale = std::nan("")}};
  ThreadPool pool(2);
  const auto store = make_hot_store(scenario.model, 3, pool, {.check_nan = true});
  ASSERT_TRUE(store.ok()) << store.status().message();
  testing::Trace trace(scenario);
  const std::string said = testing::carry_out(scenario, **store, 0, 1, pool, trace).message();
  const SparseBatch batch = testing::random_batch(scenario.model, 3, 0, 20);
  bool is_looked_up = false;
  for (size_t f = 0; f < batch.features.size(); ++f)
    for (const int64_t row : batch.features[f].rows)
      is_looked_up =
          is_looked_up ||
          said.ends_with(" of row " + std::to_string(row) + " of table '" +
                         scenario.model.tables[scenario.model.features[f].table].name + "'");
  EXPECT_TRUE(is_looked_up) << said;
}

TEST(HotRows, TablesInOneMemoryHaveTheKernelsOfOthers) {
  const ModelSpec model = testing::scenario_model();
  const GpuStoreKernels kernels{.slices = 16, .compile = nullptr};
  const auto texts = [&](std::span<const RowsAt> rows) {
    std::vector<std::string> all;
    const GpuStoreSources sources = gpu_store_sources(model, kernels, rows);
    const auto lookups = kernels::codegen::fused_gpu_sources(sources.lookups, sources.fused);
    for (const auto& source : *lookups) all.push_back(source.text);
    for (const auto& source : sources.finder) all.push_back(source.text);
    for (const auto& source : sources.updater) all.push_back(source.text);
    return all;
  };
  HotSet set = odd_hot_set(model);
  EXPECT_NE(texts(rows_by_hot_set(set)), texts({}));
  for (size_t t = 0; t < set.tables.size(); ++t) {
    set.tables[t].all_hot = t % 2 == 0;
    set.tables[t].hot_rows.clear();
  }
  EXPECT_EQ(texts(rows_by_hot_set(set)), texts({})) << "all of a table, or none";
}

TEST(HotRows, TakeWhatIsSaidBeforehand) {
  if (recmill::testing::on_cuda()) GTEST_SKIP() << "the emulator counts bytes, a GPU whole pieces";
  const ModelSpec model = testing::scenario_model();
  const auto rows = rows_by_hot_set(odd_hot_set(model));
  ThreadPool pool(2);
  const auto store = *make_hot_store(model, 1, pool);
  const int64_t taken = store->gpu().properties().memory - store->gpu().driver().free_bytes();
  GpuBatches none;
  none.largest.lookups.resize(model.features.size());
  none.trained.lookups.resize(model.features.size());
  const GpuLedger ledger = gpu_store_need(model, none, rows);
  int64_t hot = 0, expected = 0, of_tables = 0;
  for (const MemoryItem& item : ledger.device.items) {
    if (item.what == "hot rows") hot = item.bytes;
    if (item.what == "hot rows" || item.what == "numbers of hot rows" ||
        item.what == "numbers of far rows")
      of_tables += item.bytes;
    EXPECT_FALSE(item.what.starts_with("table ")) << item.what;
  }
  for (size_t t = 0; t < model.tables.size(); ++t)
    expected += table::EmbeddingTable::bytes(
        model.tables[t], table::RowShare(rows[t].near_rows(model.tables[t].rows), 0, 1));
  EXPECT_EQ(hot, expected);
  EXPECT_EQ(of_tables, taken) << "before its first batch";
}

/// The GPU's memory that a store has taken with one batch whose rows were made there.
int64_t taken_with_made_rows(const ModelSpec& model, const SparseBatch& sparse,
                             std::span<const RowsAt> rows) {
  ThreadPool pool(2);
  auto store = *GpuStore::create(model, 1, gpu_for(1),
                                 {.slices = 16, .compile = &compile_for_tests}, pool, rows);
  Gpu& gpu = store->gpu();
  testing::RowsOnGpu of(std::move(store));
  Batch batch;
  batch.purpose = Purpose::evaluate;
  batch.cut = {sparse.samples, 1};
  batch.sparse = &sparse;
  const auto prepared = of.prepare(batch);
  EXPECT_TRUE(prepared.ok()) << prepared.status().message();
  return gpu.properties().memory - gpu.driver().free_bytes();
}

TEST(HotRows, OfBatchesThatAreMadeOnTheGpuTakeWhatIsSaidBeforehand) {
  if (recmill::testing::on_cuda()) GTEST_SKIP() << "the emulator counts bytes, a GPU whole pieces";
  const ModelSpec model = testing::scenario_model();
  const SparseBatch sparse = testing::random_batch(model, 5, 7, 100);
  const auto hot = rows_by_hot_set(odd_hot_set(model));
  const std::vector<RowsAt> host(model.tables.size(), GpuMemory::host);
  const std::vector<char> made_there(model.features.size(), 1);
  GpuBatches batches;
  batches.largest.samples = sparse.samples;
  for (const SparseFeature& feature : sparse.features)
    batches.largest.lookups.push_back(std::ssize(feature.rows));
  batches.trained.lookups.resize(model.features.size());
  batches.made_there = made_there;
  const auto said = [&](std::span<const RowsAt> rows) {
    return gpu_store_need(model, batches, rows).device.total(0);
  };
  EXPECT_EQ(said(hot) - said(host),
            taken_with_made_rows(model, sparse, hot) - taken_with_made_rows(model, sparse, host));
}

// ---- several ranks

TEST(HotRows, OfTablesAtSeveralRanksHaveTheSameBitsAndCounts) {
  auto scenario = all_ways();
  scenario.model = ModelSpec();
  for (int t = 0; t < 6; ++t) {  // of two kinds, so that there are few kernels to be compiled
    TableSpec& table = scenario.model.tables.emplace_back();
    table.name = "t" + std::to_string(t);
    table.rows = std::array{300, 7, 50, 40, 90, 33}[t];
    table.dim = t % 2 == 0 ? 16 : 5;
    table.precision = t % 2 == 0 ? RowPrecision::float32 : RowPrecision::bfloat16;
    table.optimizer.kind = t % 2 == 0 ? OptimizerKind::rowwise_adagrad : OptimizerKind::adam;
    table.sharding = Sharding::table;
    table.frozen = t == 2;
    scenario.model.features.push_back({"f" + std::to_string(t), t, Pooling::sum});
  }
  for (testing::Operation& operation : scenario.operations) operation.table %= 6;
  const auto expected = plain_trace(scenario);
  const auto places = rows_by_hot_set(odd_hot_set(scenario.model));
  std::mutex mutex;  // ranks ask for the same code, and add to what is counted
  const auto compile = [&](std::span<const kernels::codegen::GpuSource> sources) {
    const std::lock_guard lock(mutex);
    return compile_for_tests(sources);
  };
  const MakeGpuExchange staged = [](Gpu& gpu,
                                    Communicator& hosts) -> Result<std::unique_ptr<GpuExchange>> {
    RECMILL_ASSIGN_OR_RETURN(auto made, StagedGpuExchange::make(gpu, hosts));
    return std::unique_ptr<GpuExchange>(std::move(made));
  };
  for (const int ranks : {2, 3}) {
    ThreadPool pool(2);
    testing::Trace trace(scenario);
    Counts counts;
    const Status status = run_ranks(ranks, [&](Communicator& communicator) -> Status {
      RECMILL_ASSIGN_OR_RETURN(const auto store,
                               TableWiseGpuStore::create(scenario.model, scenario.seed, gpu_for(1),
                                                         {.slices = 16, .compile = compile},
                                                         communicator, staged, pool, places));
      RECMILL_RETURN_IF_ERROR(
          testing::carry_out(scenario, *store, communicator.rank(), ranks, pool, trace));
      const StoreStats stats = store->stats();
      const std::lock_guard lock(mutex);
      counts.lookups += stats.far.lookups;
      counts.rows += stats.far.rows;
      return {};
    });
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(trace.difference(*expected), "") << ranks;
    EXPECT_EQ(counts, counts_of(scenario)) << ranks;
  }
}

}  // namespace
}  // namespace recmill::store
