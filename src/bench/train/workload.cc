// SPDX-License-Identifier: Apache-2.0
#include "bench/train/workload.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/random.h"
#include "bench/zipf.h"
#include "model/dlrm.h"
#include "model/graphed_layers.h"
#include "model/initial_parameters.h"
#include "step/data/bounded_queue.h"
#include "step/gpu/gpu_trainer.h"
#include "step/rank_trainer.h"
#include "store/gpu/gpu_store.h"
#include "store/table_store.h"
#include "train/plain_export.h"

namespace recmill::bench {
namespace {

constexpr int64_t kDense = 13;
constexpr int64_t kDim = 16;
constexpr double kLearningRate = 0.05;
// Different ids of the columns of Criteo's Kaggle data: 33,762,577 in all.
constexpr int64_t kTableRows[] = {1460,  583,  10131227, 2202608, 305, 24,     12517,   633,   3,
                                  93145, 5683, 8351593,  3194,    27,  14992,  5461306, 10,    5652,
                                  2173,  4,    7046547,  18,      15,  286181, 105,     142572};
constexpr int64_t kTables = std::size(kTableRows);

ModelSpec kaggle_spec() {
  ModelSpec spec;
  spec.num_dense = kDense;
  for (int64_t t = 0; t < kTables; ++t) {
    TableSpec table;
    table.name = "C" + std::to_string(t + 1);
    table.rows = kTableRows[t];
    table.dim = kDim;
    table.optimizer.kind = OptimizerKind::sgd;
    table.optimizer.learning_rate = kLearningRate;
    spec.features.push_back({.name = table.name, .table = static_cast<int>(t)});
    spec.tables.push_back(std::move(table));
  }
  return spec;
}

/// Element e of a table as pytorch_dlrm.py has it where no file says otherwise.
float initial_element(uint64_t e, int64_t rows) {
  const auto word = static_cast<double>((e * 2654435761u) & 0xFFFFFFFFu);
  return static_cast<float>((word / 2147483648.0 - 1.0) / std::sqrt(static_cast<double>(rows)));
}

void fill_dense(const TrainShape& shape, int64_t index, DenseBatch& dense) {
  const Random random(11, Purpose::test, static_cast<uint64_t>(index));
  dense.first = index * shape.samples;
  dense.samples = shape.samples;
  dense.columns = kDense;
  dense.values.resize(shape.samples * kDense);
  for (size_t i = 0; i < dense.values.size(); ++i) dense.values[i] = 4.0f * random.uniform(i);
  dense.labels.resize(shape.samples);
  for (size_t i = 0; i < dense.labels.size(); ++i)
    dense.labels[i] = random.uniform64(i, 1u << 20) < 0.25 ? 1.0f : 0.0f;
}

void fill_feature(const TrainShape& shape, int64_t index, int64_t table, const ZipfRows& rows,
                  SparseFeature& feature) {
  const Random random(12, Purpose::test, static_cast<uint64_t>(index * kTables + table));
  feature.one_each = true;
  feature.offsets.resize(shape.samples + 1);
  feature.rows.resize(shape.samples);
  for (int64_t i = 0; i <= shape.samples; ++i) feature.offsets[i] = i;
  for (int64_t i = 0; i < shape.samples; ++i) feature.rows[i] = rows.row(random.uniform64(i));
}

/// Leaves the samples of these slices.
void keep_slices(SliceRange own, train::RankBatch& batch) {
  const int64_t begin = batch.cut.begin(own.begin), end = batch.cut.end(own.end - 1);
  DenseBatch dense;
  SparseBatch sparse;
  train::copy_samples(batch.dense, begin, end, dense);
  train::copy_samples(batch.sparse, begin, end, sparse);
  batch.dense = std::move(dense);
  batch.sparse = std::move(sparse);
  batch.first_slice = own.begin;
  batch.end_slice = own.end;
}

}  // namespace

std::vector<train::RankBatch> make_train_batches(const TrainShape& shape, ThreadPool& pool,
                                                 int rank, int ranks) {
  std::vector<train::RankBatch> batches(shape.batches);
  const int slices = SliceCut::default_slices(shape.samples);
  for (int64_t b = 0; b < shape.batches; ++b) {
    train::RankBatch& batch = batches[b];
    batch.cut = {shape.samples, slices};
    batch.end_slice = slices;
    fill_dense(shape, b, batch.dense);
    batch.sparse.first = batch.dense.first;
    batch.sparse.samples = shape.samples;
    batch.sparse.features.resize(kTables);
  }
  pool.run(kTables, [&](int64_t t) {
    const ZipfRows rows(kTableRows[t], 1.05, t * 104729);
    for (int64_t b = 0; b < shape.batches; ++b)
      fill_feature(shape, b, t, rows, batches[b].sparse.features[t]);
  });
  const SliceRange own = slices_of_rank(rank, ranks, slices);
  if (ranks > 1) {
    for (train::RankBatch& batch : batches) keep_slices(own, batch);
  }
  return batches;
}

Result<std::unique_ptr<TrainWorkload>> TrainWorkload::make(
    const TrainShape& shape, std::vector<train::RankBatch>& batches, Communicator& communicator,
    ThreadPool& pool, std::unique_ptr<train::GradientReduction> beside) {
  std::unique_ptr<TrainWorkload> workload(new TrainWorkload(batches, communicator));
  TrainWorkload& w = *workload;
  w.describe(shape);
  RECMILL_ASSIGN_OR_RETURN(w.store_, store::create_table_store(w.spec_, 1, w.communicator_, pool));
  RECMILL_RETURN_IF_ERROR(w.write_initial_rows(pool));
  RECMILL_ASSIGN_OR_RETURN(w.model_, model::make_dlrm(w.options_, w.spec_));
  RECMILL_ASSIGN_OR_RETURN(Buffer parameters, model::initial_parameters(*w.model_, 1));
  w.make_optimizer();
  w.trainer_ = std::make_unique<train::RankTrainer>(
      w.spec_, *w.model_, *w.store_, *w.dense_optimizer_, w.communicator_, pool,
      batches.front().cut.slices, std::move(parameters), std::move(beside));
  RECMILL_RETURN_IF_ERROR(w.trainer_->load_parameters());
  return workload;
}

Result<std::unique_ptr<TrainWorkload>> TrainWorkload::make_on_gpu(
    const TrainShape& shape, std::vector<train::RankBatch>& batches, Communicator& communicator,
    ThreadPool& pool, GpuMachine machine) {
  std::unique_ptr<TrainWorkload> workload(new TrainWorkload(batches, communicator));
  TrainWorkload& w = *workload;
  w.describe(shape);
  store::GpuStoreKernels kernels;
  kernels.slices = batches.front().cut.slices;
  kernels.compile = machine.compile;
  RECMILL_ASSIGN_OR_RETURN(
      auto store, store::GpuStore::create(w.spec_, 1, std::move(machine.gpu), kernels, pool));
  store::GpuStore& of = *store;
  w.store_ = std::move(store);
  RECMILL_RETURN_IF_ERROR(w.write_initial_rows(pool));
  RECMILL_ASSIGN_OR_RETURN(w.model_, model::make_model_of_gpu(w.options_, w.spec_, 1));
  RECMILL_ASSIGN_OR_RETURN(Buffer parameters, model::initial_parameters(*w.model_, 1));
  RECMILL_ASSIGN_OR_RETURN(
      w.layers_, model::make_gpu_layers(
                     machine.emulated ? model::LayersOn::emulated_gpu : model::LayersOn::cuda,
                     of.gpu(), *w.model_, w.spec_));
  if (shape.graphs) w.layers_ = std::make_unique<model::GraphedLayers>(std::move(w.layers_));
  w.make_optimizer();
  RECMILL_ASSIGN_OR_RETURN(
      w.trainer_,
      train::GpuTrainer::make(w.spec_, *w.layers_, of, *w.dense_optimizer_, w.communicator_, pool,
                              std::move(parameters), machine.compile));
  RECMILL_RETURN_IF_ERROR(w.trainer_->load_parameters());
  return workload;
}

void TrainWorkload::describe(const TrainShape& shape) {
  spec_ = kaggle_spec();
  options_.bottom = {512, 256, 64, kDim};
  options_.top = {512, 256, 1};
  options_.precision = shape.precision;
  optimizer_.learning_rate = kLearningRate;
}

void TrainWorkload::make_optimizer() {
  const int64_t count = model_->parameter_count();
  dense_optimizer_ = std::make_unique<train::DenseOptimizer>(
      optimizer_, count, std::vector<train::ParameterRange>{{0, count}});
}

Status TrainWorkload::write_initial_rows(ThreadPool& pool) {
  constexpr int64_t kBlock = int64_t{1} << 18;
  std::vector<float> weights;
  for (int64_t t = 0; t < kTables; ++t) {
    for (int64_t first = 0; first < kTableRows[t]; first += kBlock) {
      const int64_t count = std::min(kBlock, kTableRows[t] - first);
      weights.resize(count * kDim);
      pool.run_ranges(count * kDim, 1 << 16, [&](int64_t begin, int64_t end) {
        for (int64_t e = begin; e < end; ++e)
          weights[e] = initial_element(static_cast<uint64_t>(first * kDim + e), kTableRows[t]);
      });
      RECMILL_RETURN_IF_ERROR(store_->write_rows({static_cast<int>(t), first, count, weights, {}}));
    }
  }
  return {};
}

Result<TrainWorkload::Ahead> TrainWorkload::prepare(int64_t index, int64_t iteration) {
  const train::RankBatch& batch = batches_[index];
  store::Batch ids;
  ids.iteration = iteration;
  ids.plan = std::make_shared<const StepPlan>(StepPlan{iteration, iteration});
  ids.cut = batch.cut;
  ids.first_slice = batch.first_slice;
  ids.end_slice = batch.end_slice;
  ids.sparse = &batch.sparse;
  Ahead ahead;
  RECMILL_ASSIGN_OR_RETURN(ahead.prepared, store_->prepare(ids));
  RECMILL_ASSIGN_OR_RETURN(ahead.sent, trainer_->send_ahead(batch.dense));
  return ahead;
}

Result<double> TrainWorkload::step(int64_t index, Ahead ahead) {
  train::RankBatch& batch = batches_[index];
  batch.prepared = std::move(ahead.prepared);
  batch.sent = std::move(ahead.sent);
  batch.before.iteration = iteration_;
  const auto result = trainer_->train(batch, {iteration_, 1.0});
  batch.prepared.reset();
  batch.sent.reset();
  RECMILL_RETURN_IF_ERROR(result.status());
  ++iteration_;
  return result->loss / static_cast<double>(result->samples);
}

Result<double> TrainWorkload::train(int64_t index) {
  RECMILL_ASSIGN_OR_RETURN(auto ahead, prepare(index, iteration_));
  return step(index, std::move(ahead));
}

Status TrainWorkload::train_ahead(std::span<const int64_t> batches) {
  train::BoundedQueue<Result<Ahead>> queue(2);
  std::jthread ahead([&, first = iteration_] {
    for (size_t i = 0; i < batches.size(); ++i)
      if (!queue.push(prepare(batches[i], first + static_cast<int64_t>(i)))) return;
  });
  const auto trained = [&]() -> Status {
    for (const int64_t index : batches) {
      auto next = queue.pop();
      RECMILL_CHECK(next.has_value());
      RECMILL_ASSIGN_OR_RETURN(auto of_batch, *std::move(next));
      RECMILL_RETURN_IF_ERROR(step(index, std::move(of_batch)).status());
    }
    return store_->settle();
  }();
  queue.close();
  return trained;
}

Status TrainWorkload::write(Files& files, const std::string& folder) const {
  train::PlainExport plain(files, folder);
  RECMILL_RETURN_IF_ERROR(plain.describe(options_, spec_, optimizer_));
  RECMILL_RETURN_IF_ERROR(plain.parameters(model_->parameters(), trainer_->parameters()));
  const std::vector<double> rates(1 + kTables, kLearningRate);
  for (const train::RankBatch& batch : batches_) plain.train(batch.dense, batch.sparse, rates);
  return plain.finish();
}

double TrainWorkload::operations() const {
  double weights = 0.0;
  for (const model::ParameterSpec& p : model_->parameters())
    if (p.shape.size() == 2) weights += static_cast<double>(p.size());
  const double first = static_cast<double>(options_.bottom.front() * kDense);
  const double pairs = static_cast<double>((kTables + 1) * kTables * kDim) / 2.0;
  return 6.0 * weights - 2.0 * first + 6.0 * pairs;
}

}  // namespace recmill::bench
