// SPDX-License-Identifier: Apache-2.0
// A step on a GPU beside the CPU's: the same losses, rows and parameters, but for the order of
// sums.
#include "step/gpu/gpu_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include "base/random.h"
#include "comm/gpu/staged_gpu_exchange.h"
#include "comm/slice_tree.h"
#include "comm/threads.h"
#include "kernels/codegen/testing/recording_driver.h"
#include "kernels/codegen/testing/test_code.h"
#include "kernels/testing/random_bags.h"
#include "model/graphed_layers.h"
#include "model/initial_parameters.h"
#include "model/make_model.h"
#include "schema/testing/tables_of_dims.h"
#include "step/rank_trainer.h"
#include "store/gpu/gpu_store.h"
#include "store/gpu/table_wise_gpu_store.h"
#include "store/table_store.h"
#include "store/testing/scenario.h"

namespace recmill::train {
namespace {

using model::ModelKind;
using model::ModelOptions;
using recmill::testing::GpuCall;
using recmill::testing::RecordingDriver;

constexpr uint64_t kSeed = 53;
constexpr int64_t kDense = 3, kRows = 40, kIterations = 3;
constexpr int kSlices = 4;

/// A batch of its own for each iteration.
RankBatch batch_of(const ModelSpec& spec, int64_t samples, int64_t iteration) {
  const Random random(kSeed + iteration, Purpose::test);
  RankBatch batch;
  batch.before.iteration = iteration;
  batch.cut = {samples, kSlices};
  batch.end_slice = kSlices;
  batch.dense.first = iteration * samples;
  batch.dense.samples = samples;
  batch.dense.columns = spec.num_dense;
  for (int64_t i = 0; i < samples * spec.num_dense; ++i)
    batch.dense.values.push_back(random.uniform(i, 1) - 0.5f);
  for (int64_t i = 0; i < samples; ++i) {
    batch.dense.labels.push_back(random.below(2, i, 2) == 0 ? 0.0f : 1.0f);
    if (iteration % 2 == 1) batch.dense.sample_weights.push_back(random.uniform(i, 3));
  }
  batch.sparse.samples = samples;
  for (size_t f = 0; f < spec.features.size(); ++f) {
    // Histories of one batch are equally long.
    const FeatureSpec& feature = spec.features[f];
    const auto same = feature.pooling == Pooling::none ? 0
                      : feature.same_ids_as >= 0       ? feature.same_ids_as
                                                       : static_cast<int64_t>(f);
    batch.sparse.features.push_back(kernels::random_bags(
        {samples, 3, kRows, spec.features[f].weighted, 2}, kSeed + 10 * iteration + same));
  }
  return batch;
}

/// What a rank has of a batch.
RankBatch part_of(const RankBatch& whole, const Communicator& communicator) {
  const SliceRange own = slices_of_rank(communicator.rank(), communicator.ranks(), kSlices);
  const int64_t begin = whole.cut.begin(own.begin), end = whole.cut.begin(own.end);
  const auto cut = [&](const std::vector<float>& values, int64_t columns) {
    return values.empty() ? values
                          : std::vector<float>(values.begin() + begin * columns,
                                               values.begin() + end * columns);
  };
  RankBatch part;
  part.before = whole.before;
  part.cut = whole.cut;
  part.first_slice = own.begin;
  part.end_slice = own.end;
  part.dense.first = whole.dense.first + begin;
  part.dense.samples = end - begin;
  part.dense.columns = whole.dense.columns;
  part.dense.values = cut(whole.dense.values, whole.dense.columns);
  part.dense.labels = cut(whole.dense.labels, 1);
  part.dense.sample_weights = cut(whole.dense.sample_weights, 1);
  part.sparse = store::testing::slice(whole.sparse, begin, end);
  return part;
}

/// One rank's training, and what it leads to.
struct Training {
  const ModelSpec& spec;
  const std::unique_ptr<Communicator> alone;  // where there is one rank
  Communicator& communicator;
  ThreadPool pool{1};
  std::vector<GpuCall>* calls = nullptr;  // where the GPU's are written down
  std::unique_ptr<store::EmbeddingStore> store;
  std::unique_ptr<model::Model> model;
  std::unique_ptr<model::GpuLayers> layers;
  std::unique_ptr<DenseOptimizer> optimizer;
  std::unique_ptr<Trainer> trainer;

  explicit Training(const ModelSpec& of)
      : spec(of), alone(ThreadsGroup(1).communicator(0)), communicator(*alone) {
    open_layers();
  }
  Training(const ModelSpec& of, Communicator& between) : spec(of), communicator(between) {
    open_layers();
  }

  static void open_layers() {
    if (!recmill::testing::on_cuda()) return;
    const Status opened = model::open_layers_on_cuda();
    RECMILL_CHECK(opened.ok(), opened.message());
  }

  void make_optimizer(const DenseOptimizerOptions& options) {
    std::vector<ParameterRange> trained;
    for (const model::ParameterSpec& p : model->parameters())
      if (p.trained) trained.push_back({p.offset, p.size()});
    optimizer = std::make_unique<DenseOptimizer>(options, model->parameter_count(), trained);
  }
  Status prepare(RankBatch& batch, store::Purpose purpose) {
    batch.purpose = purpose;
    batch.sent.reset();
    batch.plan =
        std::make_shared<const StepPlan>(StepPlan{batch.before.iteration, batch.before.iteration});
    RECMILL_RETURN_IF_ERROR(train::prepare(*store, batch));
    // Steps send what nobody has sent before.
    if (batch.before.iteration % 3 == 1) return {};
    RECMILL_ASSIGN_OR_RETURN(batch.sent, trainer->send_ahead(batch.dense));
    return {};
  }
  Result<StepResult> step(RankBatch& batch) {
    RECMILL_RETURN_IF_ERROR(prepare(batch, store::Purpose::train));
    return trainer->train(batch, {batch.before.iteration, 0.5});
  }
  Result<StepResult> score(RankBatch& batch) {
    RECMILL_RETURN_IF_ERROR(prepare(batch, store::Purpose::evaluate));
    return trainer->score(batch);
  }
  /// By table.
  std::map<int, std::vector<float>> tables() {
    std::map<int, std::vector<float>> all;
    const auto add = [&](const store::RowBlock& block) {
      std::vector<float>& table = all[block.table];
      table.insert(table.end(), block.weights.begin(), block.weights.end());
      return Status();
    };
    RECMILL_CHECK(store->read_rows(add).ok());
    return all;
  }
  std::vector<float> rows() {
    std::vector<float> all;
    for (const auto& [number, rows] : tables()) all.insert(all.end(), rows.begin(), rows.end());
    return all;
  }
  /// By name, as offsets may differ.
  std::vector<float> named(std::span<const float> flat) const {
    std::vector<model::ParameterSpec> specs = model->parameters();
    std::ranges::sort(specs, {}, &model::ParameterSpec::name);
    std::vector<float> all;
    for (const model::ParameterSpec& of : specs) {
      const auto part = flat.subspan(of.offset, of.size());
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }
};

std::unique_ptr<Training> on_cpu(const ModelSpec& spec, const ModelOptions& options,
                                 const DenseOptimizerOptions& dense) {
  auto made = std::make_unique<Training>(spec);
  made->store = *store::create_table_store(spec, kSeed, made->communicator, made->pool);
  made->model = *model::make_model(options, spec, kSeed);
  made->make_optimizer(dense);
  made->trainer = std::make_unique<RankTrainer>(spec, *made->model, *made->store, *made->optimizer,
                                                made->communicator, made->pool, kSlices,
                                                *model::initial_parameters(*made->model, kSeed));
  RECMILL_CHECK(made->trainer->load_parameters().ok());
  return made;
}

/// Ranks ask for the same code.
Result<std::vector<kernels::codegen::GpuCode>> compile(
    std::span<const kernels::codegen::GpuSource> sources) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  return kernels::codegen::compile_for_tests(sources);
}

Result<std::unique_ptr<GpuExchange>> staged(Gpu& gpu, Communicator& hosts) {
  RECMILL_ASSIGN_OR_RETURN(auto made, StagedGpuExchange::make(gpu, hosts));
  return std::unique_ptr<GpuExchange>(std::move(made));
}

std::unique_ptr<store::StoreOnGpu> make_store(Training& of) {
  auto driver = recmill::testing::test_driver();
  if (of.calls != nullptr) driver = std::make_unique<RecordingDriver>(std::move(driver), *of.calls);
  auto gpu = std::make_unique<Gpu>(std::move(driver), GpuOptions{});
  const store::GpuStoreKernels kernels{.slices = kSlices, .compile = &compile};
  if (of.communicator.ranks() == 1)
    return *store::GpuStore::create(of.spec, kSeed, std::move(gpu), kernels, of.pool);
  return *store::TableWiseGpuStore::create(of.spec, kSeed, std::move(gpu), kernels, of.communicator,
                                           &staged, of.pool);
}

/// Graphs, beside what should be launched as one: a batch whose size and addresses were there twice
/// before, with LibTorch's memory where it is. Memory that grows may move or stay where it is,
/// which is not known beforehand.
class WatchedGraphs final : public model::GpuLayers {
 public:
  explicit WatchedGraphs(std::unique_ptr<model::GpuLayers> layers) : graphs_(std::move(layers)) {}

  const model::Model& model() const override { return graphs_.model(); }
  const model::EmbeddingLayout& layout() const override { return graphs_.layout(); }
  int64_t totals_size() const override { return graphs_.totals_size(); }
  bool is_repeatable(bool training) const override { return graphs_.is_repeatable(training); }
  int64_t memory_version() const override { return graphs_.memory_version(); }
  Status forward(const model::GpuLayersInput& input, float* logits, float* totals,
                 GpuStream& stream) override {
    now_ = {input.samples, input.training, input.parameters, input.dense, input.pooled,
            logits,        totals};
    const int64_t version = memory_version();
    if (std::exchange(memory_version_, version) != version) seen_.clear();
    if (is_repeatable(input.training) && ++seen_[now_].batches > 2) ++expected_;
    return graphs_.forward(input, logits, totals, stream);
  }
  Status backward(const float* logit_gradient, const model::GpuLayersGradient& gradient,
                  GpuStream& stream) override {
    const Gradients to{logit_gradient, gradient.pooled, gradient.parameters};
    const auto seen = seen_.find(now_);
    if (seen != seen_.end() && seen->second.batches > 2) {
      if (seen->second.batches == 3) seen->second.to = to;
      if (seen->second.to != to) seen_.erase(seen);  // enqueued again, and as good as new
    }
    return graphs_.backward(logit_gradient, gradient, stream);
  }

  int64_t launched() const { return graphs_.launched(); }
  int64_t expected() const { return expected_; }

 private:
  using Gradients = std::tuple<const float*, const float*, const float*>;
  using Place = std::tuple<int64_t, bool, const float*, const float*, const float*, const float*,
                           const float*>;
  struct Seen {
    int64_t batches = 0;
    Gradients to;  // when it was captured
  };
  model::GraphedLayers graphs_;
  std::map<Place, Seen> seen_;
  Place now_;
  int64_t memory_version_ = 0;
  int64_t expected_ = 0;
};

std::unique_ptr<Training> on_gpu(std::unique_ptr<Training> made, const ModelOptions& options,
                                 const DenseOptimizerOptions& dense, bool graphs = false) {
  const ModelSpec& spec = made->spec;
  auto store = make_store(*made);
  store::StoreOnGpu& of = *store;
  made->store = std::move(store);
  made->model = *model::make_model_of_gpu(options, spec, kSeed);
  made->layers = *model::make_gpu_layers(
      recmill::testing::on_cuda() ? model::LayersOn::cuda : model::LayersOn::emulated_gpu, of.gpu(),
      *made->model, spec);
  if (graphs) made->layers = std::make_unique<WatchedGraphs>(std::move(made->layers));
  made->make_optimizer(dense);
  auto trainer =
      GpuTrainer::make(spec, *made->layers, of, *made->optimizer, made->communicator, made->pool,
                       *model::initial_parameters(*made->model, kSeed), &compile);
  RECMILL_CHECK(trainer.ok(), trainer.status().message());
  made->trainer = *std::move(trainer);
  RECMILL_CHECK(made->trainer->load_parameters().ok());
  return made;
}

std::unique_ptr<Training> on_gpu(const ModelSpec& spec, const ModelOptions& options,
                                 const DenseOptimizerOptions& dense, bool graphs = false) {
  return on_gpu(std::make_unique<Training>(spec), options, dense, graphs);
}

void expect_near(std::span<const float> a, std::span<const float> b, const char* what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], 2e-6 + 2e-5 * std::fabs(a[i])) << what << " " << i;
}

void compare(const ModelSpec& spec, const ModelOptions& options,
             const DenseOptimizerOptions& dense = {}, int64_t last_samples = 64) {
  const auto cpu = on_cpu(spec, options, dense), gpu = on_gpu(spec, options, dense);
  for (int64_t iteration = 0; iteration < kIterations; ++iteration) {
    const int64_t samples = iteration + 1 < kIterations ? 50 + 7 * iteration : last_samples;
    RankBatch a = batch_of(spec, samples, iteration), b = batch_of(spec, samples, iteration);
    const auto expected = cpu->step(a), found = gpu->step(b);
    ASSERT_TRUE(expected.ok()) << expected.status().message();
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_NEAR(found->loss, expected->loss, 1e-5 * std::fabs(expected->loss));
    expect_near(expected->logits, found->logits, "logit");
    const auto expected_score = cpu->score(a), found_score = gpu->score(b);
    ASSERT_TRUE(found_score.ok()) << found_score.status().message();
    EXPECT_NEAR(found_score->loss, expected_score->loss, 1e-5 * std::fabs(expected_score->loss));
    expect_near(expected_score->logits, found_score->logits, "score");
  }
  ASSERT_TRUE(gpu->store->settle().ok());
  ASSERT_TRUE(gpu->trainer->settle().ok());
  expect_near(cpu->rows(), gpu->rows(), "row element");
  expect_near(cpu->named(cpu->trainer->parameters()), gpu->named(gpu->trainer->parameters()),
              "parameter");
  for (size_t s = 0; s < cpu->optimizer->state().size(); ++s)
    expect_near(cpu->named(cpu->optimizer->state()[s].values),
                gpu->named(gpu->optimizer->state()[s].values), "state");
}

ModelSpec pooled(std::vector<int64_t> dims) {
  return tables_of_dims(std::move(dims), kRows, kDense);
}

TEST(GpuTrainer, TrainsADlrm) {
  compare(pooled({16, 16, 16}), {.kind = ModelKind::dlrm, .bottom = {8, 16}, .top = {20, 1}});
}

TEST(GpuTrainer, ValuesOfABatchAreCopiedBesideTheStepBefore) {
  const ModelSpec spec = pooled({16, 16});
  std::vector<GpuCall> calls;
  auto made = std::make_unique<Training>(spec);
  made->calls = &calls;
  const auto gpu = on_gpu(std::move(made), {.kind = ModelKind::mlp, .top = {8, 1}}, {});
  RankBatch first = batch_of(spec, 50, 0), second = batch_of(spec, 60, 2);
  const auto calls_of = [&](const std::function<Status()>& work) {
    const auto before = std::ssize(calls);
    const Status done = work();
    EXPECT_TRUE(done.ok()) << done.message();
    return std::vector<GpuCall>(calls.begin() + before, calls.end());
  };
  const auto stepped = calls_of([&] { return gpu->step(first).status(); });
  std::set<GpuDriver::Stream> of_kernels;
  for (const GpuCall& call : stepped)
    if (call.kind == GpuCall::Kind::launch) of_kernels.insert(call.stream);
  ASSERT_FALSE(of_kernels.empty());
  ASSERT_TRUE(train::prepare(*gpu->store, second).ok());
  const auto ahead = calls_of([&]() -> Status {
    RECMILL_ASSIGN_OR_RETURN(second.sent, gpu->trainer->send_ahead(second.dense));
    return {};
  });
  ASSERT_GE(ahead.size(), 2u);
  EXPECT_EQ(ahead[ahead.size() - 2].kind, GpuCall::Kind::copy);
  EXPECT_EQ(ahead.back().kind, GpuCall::Kind::record);
  for (const GpuCall& call : ahead) {
    EXPECT_EQ(call.stream, ahead.back().stream);
    EXPECT_FALSE(of_kernels.contains(call.stream)) << static_cast<int>(call.kind);
    EXPECT_NE(call.kind, GpuCall::Kind::wait);
  }
  const auto next = calls_of([&] { return gpu->trainer->train(second, {2, 0.5}).status(); });
  const auto waits = std::ranges::find_if(next, [&](const GpuCall& call) {
    return call.kind == GpuCall::Kind::wait && call.event == ahead.back().event;
  });
  ASSERT_NE(waits, next.end());
  for (auto call = next.begin(); call < waits; ++call) EXPECT_NE(call->stream, waits->stream);
  EXPECT_TRUE(of_kernels.contains(waits->stream));
}

TEST(GpuTrainer, TrainsRowsOfAnyWidthWithEveryDenseOptimizer) {
  DenseOptimizerOptions dense;
  dense.learning_rate = 0.05;
  dense.weight_decay = 0.01;
  dense.momentum = 0.5;
  ModelSpec spec = pooled({5, 1, 12, 3});
  spec.features[1].weighted = true;
  spec.features[2].pooling = Pooling::mean;
  compare(spec, {.kind = ModelKind::mlp, .top = {10, 1}}, dense);
  dense.kind = DenseOptimizerKind::adagrad;
  dense.initial_accumulator = 0.1;
  dense.clip_norm = 0.01;
  compare(spec, {.kind = ModelKind::mlp, .top = {10, 1}}, dense);
  dense.kind = DenseOptimizerKind::adam;
  compare(spec, {.kind = ModelKind::mlp, .top = {10, 1}}, dense);
}

TEST(GpuTrainer, TrainsModelsThatSumOverTheBatchOrReadIds) {
  ModelOptions options = {.kind = ModelKind::deep_fm,
                          .deep = {12, 6, 1},
                          .dropout = 0.5,
                          .batch_norm = true,
                          .first_order = model::FirstOrder::dense};
  compare(pooled({8, 8, 8}), options);
  options.batch_norm = false;
  options.first_order = model::FirstOrder::table;
  compare(model::with_model_tables(pooled({8, 8, 8}), options), options);
}

const ModelOptions kTbsm{.kind = ModelKind::tbsm,
                         .bottom = {8},
                         .top = {15, 15},
                         .over = {20, 1},
                         .attention = {15},
                         .sequence_length = 2};

ModelSpec histories() {
  ModelSpec spec = pooled({8, 8, 8});
  for (const int table : {1, 2})
    spec.features.push_back(
        {.name = table == 1 ? "items" : "categories", .table = table, .pooling = Pooling::none});
  return spec;
}

TEST(GpuTrainer, TrainsModelsOfHistories) {
  compare(histories(), kTbsm);
}

/// Bytes of its GPU that a rank takes to train a batch, and what it was said to.
struct MemoryOfRank {
  int64_t taken = 0, need = 0;
};
Status train_and_count(Training& of, const RankBatch& whole, MemoryOfRank& memory) {
  const int rank = of.communicator.rank(), ranks = of.communicator.ranks();
  RankBatch batch = part_of(whole, of.communicator);
  RECMILL_RETURN_IF_ERROR(of.step(batch).status());
  RECMILL_RETURN_IF_ERROR(of.trainer->settle());
  Gpu& gpu = dynamic_cast<store::StoreOnGpu&>(*of.store).gpu();
  memory.taken = gpu.properties().memory - gpu.driver().free_bytes();
  store::GpuBatches batches;
  batches.largest.samples = whole.samples();
  for (const SparseFeature& feature : whole.sparse.features)
    batches.largest.lookups.push_back(std::ssize(feature.rows));
  batches.trained = batches.largest;
  batches.slices = kSlices;
  batches.on_host = false;
  const std::vector<store::RowsAt> rows(of.spec.tables.size(), GpuMemory::device);
  store::GpuLedger ledger = store::gpu_store_need(of.spec, batches, rows, rank, ranks);
  GpuTrainer::need(of.spec, *of.model, std::ssize(of.optimizer->state()),
                   store::part_of_rank(batches, ranks), ranks, ledger);
  for (const MemoryItem& item : ledger.device.items) memory.need += item.bytes;
  return {};
}

TEST(GpuTrainer, SaysBeforehandHowMuchMemoryItTakes) {
  if (recmill::testing::on_cuda()) GTEST_SKIP() << "the emulator counts bytes, a GPU whole pieces";
  ModelSpec spec = histories();
  for (TableSpec& table : spec.tables) table.sharding = Sharding::table;
  const RankBatch whole = batch_of(spec, 64, /*iteration=*/1);  // which has weights
  for (const int ranks : {1, 3}) {
    std::vector<MemoryOfRank> of_ranks(ranks);
    const Status status = run_ranks(ranks, [&](Communicator& communicator) {
      const auto of = on_gpu(std::make_unique<Training>(spec, communicator), kTbsm,
                             {.kind = DenseOptimizerKind::adam});
      return train_and_count(*of, whole, of_ranks[communicator.rank()]);
    });
    EXPECT_TRUE(status.ok()) << status.message();
    for (const auto& [taken, need] : of_ranks) {
      EXPECT_GE(need, taken) << ranks;
      // As if all lookups of histories were one rank's; messages are staged in hosts' memory.
      EXPECT_LE(static_cast<double>(need), (ranks == 1 ? 1.1 : 2.5) * static_cast<double>(taken));
    }
  }
}

TEST(GpuTrainer, TrainsTheOtherModels) {
  compare(pooled({6, 6}), {.kind = ModelKind::wide_and_deep, .deep = {12, 8}});
  compare(pooled({6, 6}), {.kind = ModelKind::deep_cross, .bottom = {8}, .over = {10, 1}});
}

TEST(GpuTrainer, StepsWithoutSamplesAsTheCpuDoes) {
  DenseOptimizerOptions dense;
  dense.kind = DenseOptimizerKind::adam;  // whose moments go on
  compare(pooled({8, 5}), {.kind = ModelKind::mlp, .top = {10, 1}}, dense, 0);
}

/// What training leads to: by rank but for tables, which one rank has.
struct Outcome {
  std::vector<std::vector<double>> losses;  // [ranks][steps and scores]
  std::vector<std::vector<float>> logits;   // [steps], of all samples
  std::vector<std::vector<float>> parameters, state;
  std::map<int, std::vector<float>> tables;
};

/// One rank's part of it. Ranks come one after the other where they write what is of all.
Status train_rank(Training& of, const std::vector<int64_t>& sizes, Outcome& outcome) {
  Communicator& communicator = of.communicator;
  const int rank = communicator.rank();
  const auto in_turn = [&](const auto& write) -> Status {
    for (int turn = 0; turn < communicator.ranks(); ++turn) {
      if (turn == rank) write();
      RECMILL_RETURN_IF_ERROR(communicator.barrier());
    }
    return {};
  };
  for (size_t step = 0; step < sizes.size(); ++step) {
    RankBatch batch =
        part_of(batch_of(of.spec, sizes[step], static_cast<int64_t>(step)), communicator);
    RECMILL_ASSIGN_OR_RETURN(const StepResult trained, of.step(batch));
    RECMILL_RETURN_IF_ERROR(in_turn([&] {
      auto& all = outcome.logits[step];
      all.insert(all.end(), trained.logits.begin(), trained.logits.end());
    }));
    RECMILL_ASSIGN_OR_RETURN(const StepResult scored, of.score(batch));
    outcome.losses[rank].insert(outcome.losses[rank].end(), {trained.loss, scored.loss});
  }
  RECMILL_RETURN_IF_ERROR(of.store->settle());
  RECMILL_RETURN_IF_ERROR(of.trainer->settle());
  const auto parameters = of.trainer->parameters();
  outcome.parameters[rank].assign(parameters.begin(), parameters.end());
  for (const auto& state : of.optimizer->state())
    outcome.state[rank].insert(outcome.state[rank].end(), state.values.begin(), state.values.end());
  return in_turn([&] { outcome.tables.merge(of.tables()); });
}

Outcome train_ranks(const ModelSpec& spec, const ModelOptions& options,
                    const DenseOptimizerOptions& dense, const std::vector<int64_t>& sizes,
                    int ranks) {
  Outcome outcome;
  for (auto* const of_ranks : {&outcome.parameters, &outcome.state}) of_ranks->resize(ranks);
  outcome.losses.resize(ranks);
  outcome.logits.resize(sizes.size());
  const Status status = run_ranks(ranks, [&](Communicator& communicator) {
    const auto of = on_gpu(std::make_unique<Training>(spec, communicator), options, dense);
    return train_rank(*of, sizes, outcome);
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return outcome;
}

/// Several ranks, one of which has no sample of the last batch, beside one.
void compare_ranks(ModelSpec spec, const ModelOptions& options,
                   const DenseOptimizerOptions& dense = {}) {
  for (TableSpec& table : spec.tables) table.sharding = Sharding::table;
  const std::vector<int64_t> sizes{50, 57, 2};
  const Outcome expected = train_ranks(spec, options, dense, sizes, 1);
  for (const int ranks : {2, 3}) {
    const Outcome found = train_ranks(spec, options, dense, sizes, ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(found.losses[rank], found.losses[0]) << rank;
      EXPECT_EQ(found.parameters[rank], found.parameters[0]) << rank;
      EXPECT_EQ(found.state[rank], found.state[0]) << rank;
    }
    ASSERT_EQ(found.losses[0].size(), expected.losses[0].size());
    for (size_t l = 0; l < found.losses[0].size(); ++l)
      EXPECT_NEAR(found.losses[0][l], expected.losses[0][l],
                  1e-5 * std::fabs(expected.losses[0][l]));
    for (size_t step = 0; step < sizes.size(); ++step)
      expect_near(expected.logits[step], found.logits[step], "logit");
    expect_near(expected.parameters[0], found.parameters[0], "parameter");
    expect_near(expected.state[0], found.state[0], "state");
    ASSERT_EQ(found.tables.size(), expected.tables.size());
    for (const auto& [number, rows] : expected.tables)
      expect_near(rows, found.tables.at(number), "row element");
  }
}

TEST(GpuTrainer, SeveralRanksDoWhatOneDoes) {
  DenseOptimizerOptions adam;
  adam.kind = DenseOptimizerKind::adam;
  adam.clip_norm = 0.1;
  compare_ranks(pooled({16, 16, 16}), {.kind = ModelKind::dlrm, .bottom = {8, 16}, .top = {20, 1}},
                adam);
  ModelSpec spec = pooled({5, 1, 12, 3});
  spec.features[1].weighted = true;
  spec.features[2].pooling = Pooling::mean;
  spec.tables[3].frozen = true;
  compare_ranks(spec, {.kind = ModelKind::mlp, .top = {10, 1}});
}

TEST(GpuTrainer, SeveralRanksHaveHistories) {
  compare_ranks(histories(), kTbsm);
}

TEST(GpuTrainer, SeveralRanksNormalizeOverTheWholeBatch) {
  const ModelOptions options = {.kind = ModelKind::deep_fm,
                                .deep = {12, 6, 1},
                                .batch_norm = true,
                                .first_order = model::FirstOrder::dense};
  compare_ranks(pooled({8, 8, 8}), options);
}

TEST(GpuTrainer, SeveralRanksNameWhatIsNotFinite) {
  ModelSpec spec = pooled({8, 5});
  for (TableSpec& table : spec.tables) table.sharding = Sharding::table;
  std::array<std::string, 3> why;
  const Status status = run_ranks(3, [&](Communicator& communicator) -> Status {
    const auto of = on_gpu(std::make_unique<Training>(spec, communicator),
                           {.kind = ModelKind::mlp, .top = {10, 1}}, {});
    RankBatch whole = batch_of(spec, 40, 1);
    whole.dense.values[7 * kDense + 2] = std::numeric_limits<float>::infinity();
    RankBatch batch = part_of(whole, communicator);
    why[communicator.rank()] = of->step(batch).status().message();
    return communicator.barrier();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(why[0], "iteration 1: not finite: dense column 2 of sample 47");
  EXPECT_EQ(why[1], "the loss is not finite; the cause is on another rank");
  EXPECT_EQ(why[2], why[1]);
}

/// Trains and evaluates batches of these sizes with graphs and without, after one that is evaluated
/// alone. Without `same_bits` both are near each other. Returns how many were launched as graphs.
int64_t compare_graphs(const ModelSpec& spec, const ModelOptions& options,
                       const std::vector<int64_t>& sizes, int64_t first_size = 1,
                       bool same_bits = true) {
  const auto expect_same = [&](std::span<const float> a, std::span<const float> b,
                               const char* what) {
    if (!same_bits) return expect_near(a, b, what);
    EXPECT_TRUE(std::ranges::equal(a, b)) << what;
  };
  const auto expect_same_loss = [&](double a, double b, size_t batch) {
    EXPECT_NEAR(a, b, same_bits ? 0.0 : 2e-5 * std::fabs(b)) << "batch " << batch;
  };
  const auto one_by_one = on_gpu(spec, options, {}), graphed = on_gpu(spec, options, {}, true);
  RankBatch first = batch_of(spec, first_size, 0);
  for (Training* const of : {one_by_one.get(), graphed.get()}) EXPECT_TRUE(of->score(first).ok());
  for (size_t i = 0; i < sizes.size(); ++i) {
    RankBatch a = batch_of(spec, sizes[i], i), b = batch_of(spec, sizes[i], i);
    const auto expected = one_by_one->step(a), found = graphed->step(b);
    EXPECT_TRUE(found.ok()) << found.status().message();
    if (!found.ok()) return -1;
    expect_same_loss(found->loss, expected->loss, i);
    expect_same_loss(graphed->score(b)->loss, one_by_one->score(a)->loss, i);
  }
  for (Training* const of : {one_by_one.get(), graphed.get()}) {
    EXPECT_TRUE(of->store->settle().ok());
    EXPECT_TRUE(of->trainer->settle().ok());
  }
  expect_same(graphed->rows(), one_by_one->rows(), "rows");
  expect_same(graphed->trainer->parameters(), one_by_one->trainer->parameters(), "parameters");
  const auto& layers = dynamic_cast<const WatchedGraphs&>(*graphed->layers);
  EXPECT_EQ(layers.launched(), layers.expected());
  return layers.launched();
}

TEST(GpuTrainer, LaunchesGraphsWithTheSameBits) {
  const ModelOptions dlrm{.kind = ModelKind::dlrm, .bottom = {8, 16}, .top = {20, 1}};
  const ModelSpec two = pooled({16, 16});
  // Buffers grow with the fourth batch: those that move make what was captured of no more use.
  const int64_t grown = compare_graphs(two, dlrm, {30, 30, 30, 64, 64, 64, 30, 64, 30, 30});
  EXPECT_GE(grown, 8) << "all have moved";
  EXPECT_LE(grown, 12) << "none has moved";
  // Those of gradients alone: where they move, the fifth batch is enqueued again.
  EXPECT_GE(compare_graphs(two, dlrm, {30, 30, 30, 64, 30, 30}, 100), 5);
  EXPECT_EQ(compare_graphs(two, dlrm, {30, 30, 30, 31, 30, 30}, 100), 6) << "none grows";
  ModelOptions deep_fm{.kind = ModelKind::deep_fm,
                       .deep = {12, 6, 1},
                       .batch_norm = true,
                       .first_order = model::FirstOrder::table};
  const ModelSpec spec = model::with_model_tables(pooled({8, 8, 8}), deep_fm);
  EXPECT_EQ(compare_graphs(spec, deep_fm, {40, 40, 40, 40}), 4);
  deep_fm.dropout = 0.5;
  EXPECT_EQ(compare_graphs(spec, deep_fm, {40, 40, 40, 40}), 2) << "evaluation alone";
  // Its index_add() adds in any order on a GPU, with graphs or without.
  deep_fm.first_order = model::FirstOrder::dense;
  const bool same_bits = !recmill::testing::on_cuda();
  EXPECT_EQ(compare_graphs(pooled({8, 8, 8}), deep_fm, {40, 40, 40, 40}, 1, same_bits), 0);
}

TEST(GpuTrainer, NamesWhatIsNotFiniteAndChangesNothing) {
  const ModelSpec spec = pooled({8, 5});
  const auto gpu = on_gpu(spec, {.kind = ModelKind::mlp, .top = {10, 1}}, {});
  RankBatch batch = batch_of(spec, 40, 0);
  ASSERT_TRUE(gpu->step(batch).ok());
  ASSERT_TRUE(gpu->trainer->settle().ok());
  const std::vector<float> rows = gpu->rows();
  const auto all = gpu->trainer->parameters();
  const std::vector<float> parameters(all.begin(), all.end());
  batch = batch_of(spec, 40, 1);
  batch.dense.values[7 * kDense + 2] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(gpu->step(batch).status().message(),
            "iteration 1: not finite: dense column 2 of sample 47");
  ASSERT_TRUE(gpu->trainer->settle().ok());
  EXPECT_EQ(rows, gpu->rows());
  EXPECT_TRUE(std::ranges::equal(parameters, gpu->trainer->parameters()));
  const std::vector<float> poisoned(kRows * 8, std::numeric_limits<float>::quiet_NaN());
  ASSERT_TRUE(
      gpu->store
          ->write_rows({.table = 0, .first = 0, .count = kRows, .weights = poisoned, .state = {}})
          .ok());
  batch = batch_of(spec, 40, 2);
  EXPECT_THAT(gpu->step(batch).status().message(),
              ::testing::HasSubstr("iteration 2: not finite: table T0, row "));
}

}  // namespace
}  // namespace recmill::train
