// SPDX-License-Identifier: Apache-2.0
// Preprocessing on a GPU: the bits, the counts and the errors of the CPU's, in every order of
// threads.
#include "preprocess/run/gpu_preprocessor.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <set>

#include "base/json/json.h"
#include "base/random.h"
#include "batch/gpu_sparse_batch.h"
#include "device/gpu/testing/test_gpu.h"
#include "kernels/codegen/testing/test_code.h"
#include "preprocess/ops/registry.h"
#include "preprocess/run/testing/equal_batches.h"
#include "preprocess/run/testing/gpu_preprocess_sample.h"

namespace recmill::preprocess {
namespace {

using kernels::codegen::GpuCode;
using kernels::codegen::GpuSource;

enum DenseColumn { kAmount, kAny, kDenseColumns };
enum IdColumns { kSingle, kMissing, kTags, kScored, kNone, kIdColumns };

OpSpec op(const std::string& name, Json parameters = Json::object()) {
  return {name, std::move(parameters)};
}
OpSpec fill_null(double value) {
  return op("fill_null", {{"value", value}});
}
OpSpec clamp(double low, double high) {
  return op("clamp", {{"low", low}, {"high", high}});
}
OpSpec bucketize(std::vector<double> borders) {
  return op("bucketize", {{"borders", std::move(borders)}});
}
OpSpec direct(int64_t rows, const char* out_of_range) {
  return op("direct", {{"rows", rows}, {"out_of_range", out_of_range}});
}
OpSpec modulo(int64_t rows) {
  return op("modulo", {{"rows", rows}});
}
OpSpec hash(int64_t rows, uint64_t salt) {
  return op("sigrid_hash", {{"rows", rows}, {"salt", salt}});
}
OpSpec fill_missing(int64_t id) {
  return op("fill_missing_id", {{"id", id}});
}
OpSpec first_x(int64_t x) {
  return op("first_x", {{"x", x}});
}
OpSpec categorify(const char* dictionary) {
  return op("categorify", {{"dictionary", dictionary}});
}

/// A graph, and a model that has its features and no others.
struct Graph {
  FeatureGraph graph;
  ModelSpec model;

  Graph& dense(int column, std::vector<OpSpec> ops) {
    const std::string name = "dense " + std::to_string(graph.dense.size());
    graph.dense.push_back({name, Source::dense, name, column, std::move(ops), false});
    ++model.num_dense;
    return *this;
  }
  Graph& feature(Source source, int column, std::vector<OpSpec> ops, bool weighted = false) {
    const std::string name = "feature " + std::to_string(graph.features.size());
    graph.features.push_back({name, source, "column of " + name, column, std::move(ops), weighted});
    TableSpec table;
    table.name = name;
    table.rows = 300;
    model.features.push_back({name, static_cast<int>(model.tables.size()), Pooling::sum, weighted});
    model.tables.push_back(table);
    return *this;
  }
  Graph& buckets(int column, std::vector<OpSpec> ops) {
    return feature(Source::dense, column, std::move(ops));
  }
  Graph& ids(int column, std::vector<OpSpec> ops, bool weighted = false) {
    return feature(Source::ids, column, std::move(ops), weighted);
  }
};

/// Every op, alone and behind others.
Graph all_ops() {
  Graph all;
  all.dense(kAny, {})
      .dense(kAny, {op("log")})
      .dense(kAny, {fill_null(-2.5)})
      .dense(kAny, {clamp(-1, 3)})
      .dense(kAny, {op("standardize", {{"mean", 2.5}, {"deviation", 3.1}})})
      .dense(kAmount, {fill_null(0), op("log"), clamp(0.5, 6)});
  all.buckets(kAny, {bucketize({-1, 0, 0, 2.5, 1e30})})
      .buckets(kAny, {bucketize({})})
      .buckets(kAmount, {fill_null(7), op("log"), bucketize({1, 3, 5}), modulo(3)})
      .buckets(kAmount, {bucketize({10, 100}), direct(2, "drop")});
  for (const int column : {kSingle, kMissing, kTags, kScored, kNone}) {
    all.ids(column, {}, column == kScored)
        .ids(column, {hash(int64_t{1} << 40, 7)}, column == kScored)
        .ids(column, {modulo(1000), direct(300, "drop")}, column == kScored)
        .ids(column, {direct(1000, "drop"), hash(5, 1), modulo(3)}, column == kScored)
        .ids(column, {direct(7, "clamp")})
        .ids(column, {fill_missing(-1), modulo(int64_t{1} << 62)}, column == kScored)
        .ids(column, {first_x(3), fill_missing(5), hash(300, 3)}, column == kScored)
        .ids(column, {fill_missing(5), fill_missing(6), first_x(2)}, column == kSingle);
  }
  all.graph.dictionaries = {{"shared", 200, "clamp"}, {"own", 50, "drop"}};
  all.ids(kTags, {first_x(2), categorify("shared")})
      .ids(kMissing, {categorify("shared")})
      .ids(kScored, {fill_missing(5), categorify("own")}, true);
  all.model.features.push_back({"again", 0, Pooling::sum, false, 10});
  return all;
}

float dense_value(uint32_t bits) {
  const float rare[] = {std::numeric_limits<float>::quiet_NaN(),
                        std::bit_cast<float>(0xFFC12345),  // a NaN of other bits
                        std::numeric_limits<float>::infinity(),
                        -std::numeric_limits<float>::infinity(),
                        0.0f,
                        -0.0f,
                        1e-42f,  // denormal
                        16777216.0f,
                        2.5f};
  if (bits % 4 == 0) return rare[bits / 4 % std::size(rare)];
  return bits % 4 == 1 ? std::bit_cast<float>(bits & 0xBFFFFFFF)
                       : static_cast<float>(bits % 3000) - 10.0f;
}

uint64_t raw_id(uint64_t bits) {
  return bits % 8 == 0 ? bits : bits % 8 == 1 ? ~uint64_t{0} : bits / 8 % 1500;
}

int64_t length_of(int column, uint64_t bits) {
  switch (column) {
    case kSingle:
      return 1;
    case kMissing:
      return bits % 3 == 0 ? 0 : 1;
    case kTags:
      return static_cast<int64_t>(bits % 50 == 0 ? 40 : bits % 6);
    case kScored:
      return static_cast<int64_t>(bits % 5);
    default:
      return 0;
  }
}

ColumnBatch make_batch(int64_t first, int64_t samples) {
  const Random random(3, Purpose::test);
  ColumnBatch batch;
  batch.first = first;
  batch.samples = samples;
  batch.dense.resize(kDenseColumns);
  batch.ids.resize(kIdColumns);
  batch.ids[kTags].ids = {1, 2, 3};  // of nobody: offsets need not begin at 0
  for (auto& column : batch.ids) column.offsets.push_back(std::ssize(column.ids));
  for (int64_t s = first; s < first + samples; ++s) {
    batch.labels.push_back(random.uniform(s, 0));
    batch.dense[kAmount].push_back(std::fabs(dense_value(random.bits(s, 4))));
    batch.dense[kAny].push_back(dense_value(random.bits(s, 5)));
    for (int c = 0; c < kIdColumns; ++c) {
      IdColumn& column = batch.ids[c];
      const int64_t length = length_of(c, random.bits64(s, 100 + c));
      for (int64_t i = 0; i < length; ++i) {
        column.ids.push_back(raw_id(random.bits64(s, 1000 + c * 100 + i)));
        if (c == kScored) column.weights.push_back(random.uniform(s, 8000 + i));
      }
      column.offsets.push_back(std::ssize(column.ids));
    }
  }
  return batch;
}

Result<std::vector<GpuCode>> compiled(std::span<const GpuSource> sources) {
  std::vector<GpuCode> codes;
  for (const GpuSource& source : sources)
    codes.emplace_back().code = kernels::codegen::test_code(source, &gpu_preprocess_entry);
  return codes;
}

/// The same graph on the CPU and on a GPU.
struct Both {
  ThreadPool pool{2};
  std::unique_ptr<Preprocessor> cpu, gpu;
  DenseBatch cpu_dense, gpu_dense;
  SparseBatch cpu_sparse, gpu_sparse;

  explicit Both(const Graph& of, const emulation::Turns& turns = {}, RowReaders readers = {}) {
    auto on_cpu = make_preprocessor(of.graph, of.model, pool);
    auto on_gpu = make_gpu_preprocessor(
        of.graph, of.model,
        std::make_unique<Gpu>(recmill::testing::test_driver({.turns = turns}), GpuOptions{}),
        readers, compiled, pool);
    RECMILL_CHECK(on_cpu.ok(), on_cpu.status().message());
    RECMILL_CHECK(on_gpu.ok(), on_gpu.status().message());
    cpu = *std::move(on_cpu);
    gpu = *std::move(on_gpu);
  }
  void expect_same() const {
    expect_equal(gpu_dense, cpu_dense);
    expect_equal(gpu_sparse, cpu_sparse);
    EXPECT_EQ(gpu->versions(), cpu->versions());
    EXPECT_EQ(gpu->counts(), cpu->counts());
    EXPECT_EQ(gpu->flattened(), cpu->flattened());
  }
  void train(const ColumnBatch& batch) {
    const Status on_cpu = cpu->train(batch, cpu_dense, cpu_sparse);
    const Status on_gpu = gpu->train(batch, gpu_dense, gpu_sparse);
    ASSERT_TRUE(on_cpu.ok()) << on_cpu.message();
    ASSERT_TRUE(on_gpu.ok()) << on_gpu.message();
    expect_same();
  }
  void evaluate(const ColumnBatch& batch, const DictionaryVersions& as_of) {
    ASSERT_TRUE(cpu->evaluate(batch, as_of, cpu_dense, cpu_sparse).ok());
    ASSERT_TRUE(gpu->evaluate(batch, as_of, gpu_dense, gpu_sparse).ok());
    expect_same();
  }
};

TEST(GpuPreprocessor, equals_the_cpus_bitwise_in_every_order) {
  const emulation::Turns orders[] = {{emulation::Order::forward},
                                     {emulation::Order::reverse},
                                     {emulation::Order::random, 1},
                                     {emulation::Order::random, 2}};
  for (const emulation::Turns& turns : orders) {
    Both both(all_ops(), turns);
    DictionaryVersions early;
    int64_t first = 0;
    for (const int64_t samples : {300, 0, 1, 256, 255, 700, 7}) {
      SCOPED_TRACE("order " + std::to_string(static_cast<int>(turns.order)) + ", " +
                   std::to_string(samples) + " samples");
      both.train(make_batch(first, samples));
      if (first == 0) early = both.cpu->versions();
      first += samples;
    }
    both.evaluate(make_batch(first, 600), early);
  }
}

/// Of those that stay on the GPU.
int64_t features_on_gpu_alone(const SparseBatch& batch) {
  return std::ranges::count(batch.features, false, &SparseFeature::on_host);
}

TEST(GpuPreprocessor, leaves_rows_on_the_gpu_where_its_store_reads_them) {
  for (const bool host : {false, true}) {
    Both both(all_ops(), {}, {.gpu = true, .host = host});
    int64_t first = 0, on_gpu_alone = 0;
    for (const int64_t samples : {300, 0, 256, 700}) {
      const ColumnBatch batch = make_batch(first, samples);
      ASSERT_TRUE(both.cpu->train(batch, both.cpu_dense, both.cpu_sparse).ok());
      ASSERT_TRUE(both.gpu->train(batch, both.gpu_dense, both.gpu_sparse).ok());
      on_gpu_alone += features_on_gpu_alone(both.gpu_sparse);
      const auto made = both.gpu_sparse.on_gpu;
      SparseBatch copy = both.gpu_sparse;
      for (size_t f = 0; made != nullptr && f < made->features.size(); ++f) {
        if (!made->features[f].are_there) continue;
        copy.features[f].rows.clear();
        ASSERT_TRUE(made->fetch({&f, 1}, copy).ok());
      }
      ASSERT_TRUE(bring_to_host(copy).ok());
      expect_equal(copy, both.cpu_sparse);
      ASSERT_TRUE(bring_to_host(both.gpu_sparse).ok());
      both.expect_same();
      first += samples;
    }
    EXPECT_EQ(on_gpu_alone > 0, !host);
  }
}

TEST(GpuPreprocessor, brings_to_the_host_what_it_has_to_finish) {
  Graph graph;
  graph.ids(kTags, {modulo(100)}).ids(kTags, {direct(100, "drop")});
  graph.ids(kSingle, {}).ids(kScored, {modulo(7)}, /*weighted=*/true);
  graph.ids(kScored, {modulo(7)}, /*weighted=*/true).graph.features.back().normalized = true;
  Both both(graph, {}, {.gpu = true, .host = false});
  const ColumnBatch batch = make_batch(0, 400);
  ASSERT_TRUE(both.cpu->train(batch, both.cpu_dense, both.cpu_sparse).ok());
  ASSERT_TRUE(both.gpu->train(batch, both.gpu_dense, both.gpu_sparse).ok());
  std::vector<bool> on_host;
  for (size_t f = 0; f < both.gpu_sparse.features.size(); ++f) {
    on_host.push_back(both.gpu_sparse.features[f].on_host);
    EXPECT_NE(both.gpu_sparse.on_gpu->features[f].are_there, on_host.back()) << f;
  }
  EXPECT_EQ(on_host, (std::vector<bool>{false, true, true, false, true}))
      << "as they are; dropped lookups; rows that no table has; as they are; normalized weights";
  ASSERT_TRUE(bring_to_host(both.gpu_sparse).ok());
  both.expect_same();
}

TEST(GpuPreprocessor, memory_of_rows_is_used_again_once_their_readers_are_done) {
  if (recmill::testing::on_cuda()) GTEST_SKIP() << "a GPU is not late each time";
  Both both(Graph().ids(kTags, {modulo(100)}), {}, {.gpu = true, .host = false});
  ASSERT_TRUE(both.gpu->train(make_batch(0, 400), both.gpu_dense, both.gpu_sparse).ok());
  GpuSparseBatch& made = *both.gpu_sparse.on_gpu;
  const int64_t* const rows = made.features[0].rows;
  const int64_t count = both.gpu_sparse.features[0].offsets.back();
  Gpu& gpu = made.gpu();
  auto stream = *gpu.open_stream();
  auto read = *gpu.allocate_pinned(static_cast<size_t>(count) * sizeof(int64_t), "rows");
  ASSERT_TRUE(made.wait(stream).ok());
  ASSERT_TRUE(
      gpu.driver().copy(read.as<int64_t>().data(), rows, read.size(), stream.handle()).ok());
  ASSERT_TRUE(made.read_by(stream).ok());
  both.gpu_sparse.on_gpu.reset();
  SparseBatch next;
  ASSERT_TRUE(both.gpu->train(make_batch(400, 400), both.gpu_dense, next).ok());
  EXPECT_EQ(next.on_gpu->features[0].rows, rows) << "the same memory";
  ASSERT_TRUE(both.cpu->train(make_batch(0, 400), both.cpu_dense, both.cpu_sparse).ok());
  ASSERT_TRUE(stream.synchronize().ok());
  EXPECT_TRUE(
      std::ranges::equal(read.as<int64_t>().first(count), both.cpu_sparse.features[0].rows));
}

TEST(GpuPreprocessor, is_tested_with_every_op) {
  const FeatureGraph graph = all_ops().graph;
  std::set<std::string> named;
  for (const auto* chains : {&graph.dense, &graph.features})
    for (const Chain& chain : *chains)
      for (const OpSpec& spec : chain.ops) named.insert(spec.op);
  for (const std::string& name : op_names()) EXPECT_TRUE(named.contains(name)) << name;
}

TEST(GpuPreprocessor, counts_what_became_of_ids) {
  Graph graph;
  graph.ids(kSingle, {direct(10, "clamp")}).ids(kTags, {direct(10, "drop")});
  Both both(graph);
  both.train(make_batch(0, 500));
  const auto counts = both.gpu->counts();
  EXPECT_GT(counts[0].ids.clamped, 400);
  EXPECT_GT(counts[1].ids.dropped, 400);
}

TEST(GpuPreprocessor, names_an_id_without_a_row_as_the_cpu_does) {
  const std::vector<Graph> graphs{
      Graph().ids(kSingle, {modulo(5)}).ids(kTags, {first_x(1), direct(1000, "error")}),
      Graph().ids(kMissing, {fill_missing(2000), direct(1500, "error")}),
      Graph().buckets(kAmount, {bucketize({10, 100}), direct(2, "error")})};
  for (const Graph& graph : graphs) {
    Both both(graph);
    const ColumnBatch batch = make_batch(7000, 400);
    const Status on_cpu = both.cpu->train(batch, both.cpu_dense, both.cpu_sparse);
    const Status on_gpu = both.gpu->train(batch, both.gpu_dense, both.gpu_sparse);
    EXPECT_FALSE(on_cpu.ok());
    EXPECT_EQ(on_gpu.message(), on_cpu.message());
  }
}

TEST(GpuPreprocessor, leaves_dictionaries_to_the_cpu) {
  Graph graph;
  graph.graph.dictionaries = {{"small", 20, "error"}};
  graph.ids(kTags, {fill_missing(1), categorify("small")});
  Both both(graph);
  both.train(make_batch(0, 4));
  const ColumnBatch rest = make_batch(4, 400);
  const std::string message = both.gpu->train(rest, both.gpu_dense, both.gpu_sparse).message();
  EXPECT_EQ(message, both.cpu->train(rest, both.cpu_dense, both.cpu_sparse).message());
  EXPECT_NE(message.find("the dictionary of table 'small' is full"), std::string::npos) << message;
}

TEST(GpuPreprocessor, hands_on_columns_without_ops) {
  Both both(Graph().ids(kTags, {}).ids(kNone, {}));
  both.train(make_batch(0, 300));
  Both dense(Graph().dense(kAny, {}));
  dense.train(make_batch(0, 300));
}

TEST(GpuPreprocessor, fails_as_its_compiler) {
  ThreadPool pool(1);
  const Graph graph = all_ops();
  const auto made = make_gpu_preprocessor(
      graph.graph, graph.model,
      std::make_unique<Gpu>(recmill::testing::test_driver(), GpuOptions{}), {},
      [](auto) -> Result<std::vector<GpuCode>> { return Status::Failed("no compiler"); }, pool);
  EXPECT_EQ(made.status().message(), "no compiler");
}

}  // namespace
}  // namespace recmill::preprocess
