// SPDX-License-Identifier: Apache-2.0
// Batches whose rows were made on the store's GPU: they have the answers of those that are sent,
// and no row goes over the bus that nobody needs on the other side.
#include <gtest/gtest.h>

#include "base/json/json.h"
#include "base/random.h"
#include "batch/gpu_sparse_batch.h"
#include "kernels/codegen/testing/recording_driver.h"
#include "kernels/codegen/testing/test_code.h"
#include "preprocess/run/gpu_batch.h"
#include "preprocess/run/gpu_preprocessor.h"
#include "store/gpu/gpu_memory.h"
#include "store/gpu/gpu_store.h"
#include "store/store_contract.h"
#include "store/testing/rows_on_gpu.h"

namespace recmill::store {
namespace {

using kernels::codegen::compile_for_tests;
using recmill::testing::GpuCall;

TEST(MadeRows, HaveTheBitsOfRowsThatAreSent) {
  auto scenario = testing::training_scenario(/*seed=*/3, /*count=*/3);  // snapshots among it
  scenario.operations.insert(scenario.operations.end() - 1,
                             {testing::Operation::Kind::evaluate, {20}, 1.0, 0});
  const auto expected = plain_trace(scenario);
  std::vector<RowsAt> rows(scenario.model.tables.size(), GpuMemory::device);
  for (size_t t = 0; t < rows.size(); t += 2) rows[t] = GpuMemory::host;
  ThreadPool pool(2);
  auto made = GpuStore::create(scenario.model, scenario.seed,
                               std::make_unique<Gpu>(recmill::testing::test_driver(), GpuOptions{}),
                               {.slices = 16, .compile = &compile_for_tests}, pool, rows);
  ASSERT_TRUE(made.ok()) << made.status().message();
  testing::RowsOnGpu store(*std::move(made));
  testing::Trace trace(scenario);
  const Status status = testing::carry_out(scenario, store, 0, 1, pool, trace);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(trace.difference(*expected), "");
}

// ---- what goes over the bus

using preprocess::Source;
constexpr int64_t kRows = 500;

/// A graph with every kind of bags, and its model.
struct Graph {
  preprocess::FeatureGraph graph;
  ModelSpec model;

  Graph() {
    const auto op = [](const char* name, Json parameters) {
      return preprocess::OpSpec{name, std::move(parameters)};
    };
    const auto modulo = op("modulo", {{"rows", kRows}});
    graph.dense = {{"age", Source::dense, "age", 0, {op("log", Json::object())}, false}};
    model.num_dense = 1;
    add("single", Source::ids, 0, {modulo}, Pooling::sum);
    add("tags", Source::ids, 1, {modulo}, Pooling::mean);
    add("few", Source::ids, 1, {op("first_x", {{"x", 2}}), modulo}, Pooling::none);
    add("scored", Source::ids, 2, {modulo}, Pooling::sum, /*weighted=*/true);
    add("bucket", Source::dense, 0, {op("bucketize", {{"borders", {1, 5, 9}}})}, Pooling::sum);
    add("seen", Source::ids, 0, {op("categorify", {{"dictionary", "seen"}})}, Pooling::sum);
    graph.dictionaries = {{"seen", kRows, "clamp"}};
    model.features.push_back({"again", 6, Pooling::sum, false, /*same_ids_as=*/1});
    model.tables.push_back(model.tables[0]);
  }
  void add(const std::string& name, Source source, int column, std::vector<preprocess::OpSpec> ops,
           Pooling pooling, bool weighted = false) {
    graph.features.push_back({name, source, name, column, std::move(ops), weighted});
    model.features.push_back({name, static_cast<int>(model.tables.size()), pooling, weighted});
    TableSpec table;
    table.name = name;
    table.rows = kRows;
    table.dim = 4;
    model.tables.push_back(table);
  }
};

ColumnBatch columns(int64_t first, int64_t samples) {
  const Random random(5, recmill::Purpose::test);
  ColumnBatch batch;
  batch.first = first;
  batch.samples = samples;
  batch.dense.resize(1);
  batch.ids.resize(3);
  for (IdColumn& column : batch.ids) column.offsets = {0};
  for (int64_t s = first; s < first + samples; ++s) {
    batch.labels.push_back(0.0f);
    batch.dense[0].push_back(static_cast<float>(random.bits(s, 0) % 12));
    for (int c = 0; c < 3; ++c) {
      IdColumn& column = batch.ids[c];
      const uint64_t length = c == 0 ? 1 : random.bits(s, 1 + c) % 5;
      for (uint64_t i = 0; i < length; ++i) {
        column.ids.push_back(random.bits64(s, 100 * (1 + c) + i));
        if (c == 2) column.weights.push_back(random.uniform(s, 900 + i));
      }
      column.offsets.push_back(std::ssize(column.ids));
    }
  }
  return batch;
}

/// Bytes that arrays take of one copy: each begins at a multiple of 256.
template <class T>
int64_t staged(int64_t count) {
  return (count * int64_t{sizeof(T)} + 255) / 256 * 256;
}

struct Bytes {
  int64_t up = 0, down = 0;
  bool operator==(const Bytes&) const = default;
};

class MadeRowsOnTheBus : public ::testing::Test {
 protected:
  MadeRowsOnTheBus()
      : gpu_(std::make_shared<Gpu>(std::make_unique<recmill::testing::RecordingDriver>(
                                       recmill::testing::test_driver(), calls_),
                                   GpuOptions{})) {}

  std::unique_ptr<preprocess::Preprocessor> preprocessor(preprocess::RowReaders readers) {
    auto made =
        make_gpu_preprocessor(of_.graph, of_.model, gpu_, readers, &compile_for_tests, pool_);
    RECMILL_CHECK(made.ok(), made.status().message());
    return *std::move(made);
  }
  Bytes bytes_of(const std::function<void()>& work) {
    const auto before = std::ssize(calls_);
    work();
    Bytes bytes;
    for (auto call = calls_.begin() + before; call != calls_.end(); ++call) {
      if (call->way == GpuCall::Way::to_device) bytes.up += static_cast<int64_t>(call->bytes);
      if (call->way == GpuCall::Way::to_host) bytes.down += static_cast<int64_t>(call->bytes);
    }
    return bytes;
  }
  Bytes preprocessing(preprocess::Preprocessor& of, const ColumnBatch& batch, SparseBatch& sparse) {
    return bytes_of([&] {
      DenseBatch dense;
      const Status status = of.train(batch, dense, sparse);
      ASSERT_TRUE(status.ok()) << status.message();
    });
  }

  const Graph of_;
  ThreadPool pool_{2};
  std::vector<GpuCall> calls_;
  std::shared_ptr<Gpu> gpu_;
};

TEST_F(MadeRowsOnTheBus, RawColumnsGoUpAndCountsAndDenseValuesComeDown) {
  const auto made = preprocessor({.gpu = true, .host = false});
  const auto both = preprocessor({.gpu = true, .host = true});
  for (const int64_t samples : {700, 64, 333}) {
    const ColumnBatch batch = columns(1000, samples);
    SparseBatch sparse, on_both;
    const Bytes bytes = preprocessing(*made, batch, sparse);
    const auto lookups = [&](size_t f) { return sparse.features[f].offsets.back(); };
    constexpr int64_t kChains = 6, kFeatures = 5;  // "seen" is the CPU's
    int64_t up = kFeatures * int64_t{sizeof(preprocess::IdCounts)} +
                 int64_t{sizeof(preprocess::FlattenedCounts)};
    up += staged<float>(samples);            // age
    up += 3 * staged<int64_t>(samples + 1);  // of bags as they come
    for (const IdColumn& raw : batch.ids) up += staged<uint64_t>(std::ssize(raw.ids));
    up += staged<float>(lookups(3));         // weights
    up += 3 * staged<int64_t>(samples + 1);  // tags, few, scored
    up += staged<preprocess::GpuChain>(kChains);
    up += staged<preprocess::ChainTile>(kChains * ((samples + 255) / 256));
    const int64_t down = staged<float>(samples) + staged<preprocess::FlattenedCounts>(1) +
                         staged<preprocess::IdCounts>(kFeatures);
    EXPECT_EQ(bytes, (Bytes{up, down})) << samples;
    const Bytes of_both = preprocessing(*both, batch, on_both);
    int64_t rows = staged<float>(lookups(3));
    for (size_t f = 0; f < 5; ++f) rows += staged<int64_t>(lookups(f));
    EXPECT_EQ(of_both, (Bytes{up, down + rows})) << "for who reads rows on the host, too";
  }
}

TEST_F(MadeRowsOnTheBus, NoRowGoesUpASecondTime) {
  const auto made = preprocessor({.gpu = true, .host = false});
  const auto store =
      *GpuStore::create(of_.model, 1, gpu_, {.slices = 16, .compile = &compile_for_tests}, pool_);
  Stream stream(pool_);
  for (const int64_t samples : {700, 64, 333}) {
    SparseBatch there, sent;
    preprocessing(*made, columns(1000, samples), there);
    sent = there;
    ASSERT_TRUE(bring_to_host(sent).ok());
    std::vector<std::vector<float>> values[2];
    Bytes prepare[2], step[2];
    for (const bool is_sent : {false, true}) {
      const SparseBatch& sparse = is_sent ? sent : there;
      Batch batch;
      batch.cut = {samples, 4};
      batch.end_slice = 4;
      batch.sparse = &sparse;
      std::unique_ptr<Prepared> prepared;
      prepare[is_sent] = bytes_of([&] { prepared = *store->prepare(batch); });
      std::vector<FeatureOutput> output;
      std::vector<FeatureGradient> gradient;
      for (size_t f = 0; f < of_.model.features.size(); ++f) {
        const bool pooled = of_.model.features[f].pooling != Pooling::none;
        const int64_t items = pooled ? samples : sparse.features[f].offsets.back();
        auto& of = values[is_sent].emplace_back(items * of_.model.dim_of(f));
        output.push_back({of.data(), of_.model.dim_of(f)});
        gradient.push_back({of.data(), of_.model.dim_of(f)});
      }
      step[is_sent] = bytes_of([&] {
        EXPECT_TRUE(store->lookup(*prepared, output, stream).ok());
        const Update update{prepared.get(), gradient};  // at a rate of 0: rows stay
        EXPECT_TRUE(store->update({&update, 1}, {0, 0.0}, stream).ok());
        EXPECT_TRUE(store->settle().ok());
      });
    }
    int64_t less = staged<float>(there.features[3].offsets.back());
    for (const size_t f : {0, 1, 2, 3, 4, 6}) {
      const SparseFeature& feature = there.features[f];
      less += staged<int64_t>(feature.offsets.back());
      if (!feature.one_each) less += staged<int64_t>(samples + 1);
    }
    EXPECT_EQ(prepare[true].up - prepare[false].up, less) << samples;
    EXPECT_EQ(prepare[false].down, 0);
    EXPECT_EQ(step[false], step[true]) << samples;
    EXPECT_EQ(values[false], values[true]) << samples;
  }
}

TEST_F(MadeRowsOnTheBus, ABatchWaitsForItsRows) {
  const auto made = preprocessor({.gpu = true, .host = false});
  const auto store =
      *GpuStore::create(of_.model, 1, gpu_, {.slices = 16, .compile = &compile_for_tests}, pool_);
  SparseBatch sparse;
  preprocessing(*made, columns(0, 64), sparse);
  const auto recorded = std::ranges::find_if(calls_.rbegin(), calls_.rend(), [](const auto& call) {
    return call.kind == GpuCall::Kind::record;
  });
  ASSERT_NE(recorded, calls_.rend());
  const auto before = std::ssize(calls_);
  Batch batch;
  batch.cut = {64, 1};
  batch.sparse = &sparse;
  const auto prepared = store->prepare(batch);
  ASSERT_TRUE(prepared.ok());
  EXPECT_TRUE(std::any_of(calls_.begin() + before, calls_.end(), [&](const GpuCall& call) {
    return call.kind == GpuCall::Kind::wait && call.event == recorded->event &&
           call.stream == calls_.back().stream;
  })) << "the stream whose end lookups wait for";
}

TEST_F(MadeRowsOnTheBus, MemoryIsSaidBeforehand) {
  if (recmill::testing::on_cuda()) GTEST_SKIP() << "the emulator counts bytes, a GPU whole pieces";
  const ColumnBatch batch = columns(0, 700);
  const auto taken = [&](const std::function<void()>& work) {
    const int64_t before = gpu_->driver().free_bytes();
    work();
    return before - gpu_->driver().free_bytes();
  };
  constexpr int64_t kHeld = 3;
  SparseBatch held[kHeld];
  std::unique_ptr<preprocess::Preprocessor> made;
  const int64_t by_preprocessing = taken([&] {
    made = preprocessor({.gpu = true, .host = false});
    for (SparseBatch& sparse : held) preprocessing(*made, batch, sparse);
  });
  std::vector<int64_t> lookups;
  for (const SparseFeature& feature : held[0].features) lookups.push_back(feature.offsets.back());
  // "few" leaves ids out: the column has as many as "tags".
  const auto need = preprocess::gpu_preprocessor_need(of_.graph, of_.model, {700, lookups},
                                                      {.gpu = true, .host = false});
  ASSERT_TRUE(need.ok());
  const int64_t said = need->columns.device + kHeld * (need->rows.device + need->offsets.device);
  EXPECT_GE(said, by_preprocessing);
  EXPECT_LE(said, by_preprocessing + (kHeld + 1) * (staged<int64_t>(701) * 5 / 4 + 256))
      << "offsets of a column of one id each, which are not there";

  const auto features = preprocess::features_made_on_gpu(of_.graph, of_.model);
  EXPECT_EQ(*features, (std::vector<char>{1, 1, 1, 1, 1, 0, 1}));
  GpuBatches batches;
  batches.largest = batches.trained = {700, lookups};
  batches.slices = 4;
  batches.prepared = kHeld;
  batches.made_there = *features;
  const std::vector<RowsAt> rows(of_.model.tables.size(), GpuMemory::device);
  std::unique_ptr<GpuStore> store;
  std::vector<std::unique_ptr<Prepared>> prepared;
  const int64_t by_store = taken([&] {
    store =
        *GpuStore::create(of_.model, 1, gpu_, {.slices = 16, .compile = &compile_for_tests}, pool_);
    for (const SparseBatch& sparse : held) {
      Batch of;
      of.cut = {700, 4};
      of.end_slice = 4;
      of.sparse = &sparse;
      prepared.push_back(*store->prepare(of));
    }
  });
  const GpuLedger all = gpu_store_need(of_.model, batches, rows);
  int64_t before_steps = 0;
  for (const MemoryItem& item : all.device.items)
    if (item.what.starts_with("table ") || item.what == "bags" || item.what == "updates" ||
        item.what == "lookups in the order of summation")
      before_steps += item.bytes;
  EXPECT_GE(before_steps, by_store);
  EXPECT_LE(static_cast<double>(before_steps), 1.1 * static_cast<double>(by_store));
}

}  // namespace
}  // namespace recmill::store
