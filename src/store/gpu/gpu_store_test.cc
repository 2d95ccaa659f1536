// SPDX-License-Identifier: Apache-2.0
// The store of a GPU: what every store must do, and the bits of the plain one.
#include "store/gpu/gpu_store.h"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "batch/feature_layout.h"
#include "kernels/codegen/testing/test_code.h"
#include "store/gpu/gpu_memory.h"
#include "store/store_contract.h"
#include "store/testing/caller_on_gpu.h"

namespace recmill::store {
namespace {

using kernels::codegen::compile_for_tests;

Result<std::unique_ptr<GpuStore>> make_gpu_store(const ModelSpec& model, uint64_t seed,
                                                 ThreadPool& pool,
                                                 std::span<const RowsAt> rows = {},
                                                 GpuOptions options = {}) {
  EmulatedGpu of;
  of.turns.order = seed % 2 == 0 ? emulation::Order::reverse : emulation::Order::forward;
  auto gpu = std::make_unique<Gpu>(recmill::testing::test_driver(of), options);
  return GpuStore::create(model, seed, std::move(gpu),
                          {.slices = 16, .compile = &compile_for_tests}, pool, rows);
}

struct GpuFixture {
  static constexpr bool kManyRanks = false;
  static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
                                                      Communicator&, ThreadPool& pool) {
    RECMILL_ASSIGN_OR_RETURN(auto store, make_gpu_store(model, seed, pool));
    return std::unique_ptr<EmbeddingStore>(std::move(store));
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Gpu, StoreContract, GpuFixture);

struct OnGpuFixture {
  static constexpr bool kManyRanks = false;
  static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
                                                      Communicator& communicator,
                                                      ThreadPool& pool) {
    RECMILL_ASSIGN_OR_RETURN(auto made, GpuFixture::make(model, seed, communicator, pool));
    std::unique_ptr<StoreOnGpu> store(static_cast<GpuStore*>(made.release()));
    return std::unique_ptr<EmbeddingStore>(
        std::make_unique<testing::CallerOnGpu>(model, std::move(store), pool));
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(OnGpu, StoreContract, OnGpuFixture);

TEST(GpuStore, RowsInHostMemoryHaveTheSameBits) {
  auto scenario = testing::training_scenario(/*seed=*/3, /*count=*/5);  // snapshots among it
  using Kind = testing::Operation::Kind;
  for (int table = 0; table < 4; ++table)
    scenario.operations.insert(scenario.operations.end() - 1, {Kind::write_rows, {}, 1.0, table});
  scenario.operations.insert(scenario.operations.end() - 1, {Kind::evaluate, {20}, 1.0, 0});
  const auto expected = plain_trace(scenario);
  std::vector<RowsAt> rows(scenario.model.tables.size(), GpuMemory::host);
  for (size_t t = 0; t < rows.size(); t += 3) rows[t] = GpuMemory::device;
  ThreadPool pool(2);
  const auto store = make_gpu_store(scenario.model, scenario.seed, pool, rows);
  ASSERT_TRUE(store.ok()) << store.status().message();
  testing::Trace trace(scenario);
  const Status status = testing::carry_out(scenario, **store, 0, 1, pool, trace);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(trace.difference(*expected), "");
}

TEST(GpuStore, NamesTheKernelThatWroteANaNWhereThatIsAskedFor) {
  testing::Scenario scenario{testing::scenario_model(), /*seed=*/3, /*slices=*/8, {}};
  ThreadPool pool(2);
  const auto said = [&](GpuOptions options, bool poisoned) {
    const auto store = make_gpu_store(scenario.model, scenario.seed, pool, {}, options);
    const TableSpec& table = scenario.model.tables[0];
    const std::vector<float> nans(poisoned ? table.rows * table.dim : 0, std::nanf(""));
    RECMILL_CHECK(nans.empty() ||
                  (*store)->write_rows({.count = table.rows, .weights = nans, .state = {}}).ok());
    testing::Trace trace(scenario);
    return testing::carry_out(scenario, **store, 0, 1, pool, trace).message();
  };
  const auto expect = [&](const std::string& error, const char* text) {
    EXPECT_TRUE(std::regex_match(error, std::regex(text))) << error;
  };
  scenario.operations = {{.batches = {20}, .learning_rate_scale = std::nan("")}};
  EXPECT_EQ(said({}, false), "");
  expect(said({.check_nan = true}, false),
         "kernel row_update\\w*: wrote a NaN as element \\d+ of row \\d+ of table '\\w+'");
  scenario.operations = {{.kind = testing::Operation::Kind::evaluate, .batches = {20}}};
  EXPECT_EQ(said({}, true), "");
  EXPECT_EQ(said({.check_nan = true}, false), "");
  expect(said({.check_nan = true}, true),
         "kernel fused_pool_\\w+: wrote a NaN as element \\d+ of row \\d+ of feature '\\w+'");
}

TEST(GpuStore, TablesLargerThanTheGpusMemoryStandInTheHosts) {
  if (recmill::testing::on_cuda()) GTEST_SKIP() << "a GPU of 1 MiB, which no machine has";
  EmulatedGpu of;
  of.memory = 1 << 20;
  ThreadPool pool(1);
  ModelSpec model = testing::scenario_model();
  model.tables[3].rows = 100000;
  std::vector<RowsAt> rows(model.tables.size(), GpuMemory::device);
  rows[3] = GpuMemory::host;
  Gpu* const gpu = new Gpu(*make_emulated_driver(of), GpuOptions{});
  const auto store = GpuStore::create(model, 1, std::unique_ptr<Gpu>(gpu),
                                      {.slices = 16, .compile = &compile_for_tests}, pool, rows);
  ASSERT_TRUE(store.ok()) << store.status().message();
  int64_t on_device = 0;
  for (size_t t = 0; t < model.tables.size(); ++t)
    if (t != 3)
      on_device += table::EmbeddingTable::bytes(model.tables[t],
                                                table::RowShare(model.tables[t].rows, 0, 1));
  EXPECT_EQ(gpu->driver().free_bytes(), of.memory - on_device);
}

// The device memory that a store holds once it has had `count` batches at a time.
int64_t device_bytes(const ModelSpec& model, const SparseBatch& sparse, int slices, int count,
                     std::span<const RowsAt> rows) {
  ThreadPool pool(2);
  auto store = *make_gpu_store(model, 1, pool, rows);
  Stream stream(pool);
  std::vector<std::unique_ptr<Prepared>> prepared;
  Batch batch;
  batch.cut = {sparse.samples, slices};
  batch.end_slice = slices;
  batch.sparse = &sparse;
  for (int i = 0; i < count; ++i) prepared.push_back(*store->prepare(batch));
  std::vector<std::vector<float>> values;  // looked up, and again as the gradient
  std::vector<FeatureOutput> output;
  std::vector<FeatureGradient> gradient;
  for (size_t f = 0; f < model.features.size(); ++f) {
    const int64_t items =
        rows_out(model.features[f].pooling, sparse.features[f].view(sparse.samples));
    values.emplace_back(static_cast<size_t>(items * model.dim_of(f)));
    output.push_back({values.back().data(), model.dim_of(f)});
    gradient.push_back({values.back().data(), model.dim_of(f)});
  }
  for (int i = 0; i < count; ++i) {
    const Update update{prepared[static_cast<size_t>(i)].get(), gradient};
    EXPECT_TRUE(store->lookup(*update.prepared, output, stream).ok());
    EXPECT_TRUE(store->update({&update, 1}, {i, 1.0}, stream).ok());
  }
  EXPECT_TRUE(store->settle().ok());
  return store->gpu().properties().memory - store->gpu().driver().free_bytes();
}

TEST(GpuStore, SaysBeforehandHowMuchMemoryItTakes) {
  if (recmill::testing::on_cuda()) GTEST_SKIP() << "the emulator counts bytes, a GPU whole pieces";
  const ModelSpec model = testing::scenario_model();
  const SparseBatch sparse = testing::random_batch(model, 5, 7, 100);
  std::vector<RowsAt> rows(model.tables.size(), GpuMemory::host);
  for (size_t t = 0; t < rows.size(); t += 3) rows[t] = GpuMemory::device;
  GpuBatches batches;
  batches.largest.samples = sparse.samples;
  for (const SparseFeature& feature : sparse.features)
    batches.largest.lookups.push_back(std::ssize(feature.rows));
  batches.trained = batches.largest;
  batches.slices = 4;
  batches.prepared = 2;
  const int64_t need = gpu_store_need(model, batches, rows).device.total(0);
  const int64_t taken = device_bytes(model, sparse, batches.slices, 2, rows);
  EXPECT_GE(need, taken);
  EXPECT_LE(static_cast<double>(need), 1.1 * static_cast<double>(taken));
}

TEST(GpuStore, NamesTheTableThatThereIsNoMemoryFor) {
  EmulatedGpu of;  // a GPU of 100 KiB, which no machine has
  of.memory = 100 * 1024;
  ThreadPool pool(1);
  ModelSpec model = testing::scenario_model();
  model.tables[3].name = "wide";
  model.tables[3].rows = 100000;
  const auto store =
      GpuStore::create(model, 1, std::make_unique<Gpu>(*make_emulated_driver(of), GpuOptions{}),
                       {.compile = &compile_for_tests}, pool);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().message().rfind("table wide: ", 0), 0u) << store.status().message();
}

}  // namespace
}  // namespace recmill::store
