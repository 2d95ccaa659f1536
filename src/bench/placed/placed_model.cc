// SPDX-License-Identifier: Apache-2.0
#include "bench/placed/placed_model.h"

#include <utility>

#include "base/random.h"
#include "bench/placed/placed_shape.h"
#include "model/dlrm.h"
#include "model/initial_parameters.h"

namespace recmill::bench {
namespace {

constexpr int64_t kDense = 13;

}  // namespace

Result<std::unique_ptr<PlacedModel>> PlacedModel::make(ModelSpec spec, const PlacementPlan& plan,
                                                       store::ShardedOptions options,
                                                       Communicator& all, ThreadPool& pool) {
  spec.num_dense = kDense;
  std::unique_ptr<PlacedModel> made(new PlacedModel(std::move(spec)));
  PlacedModel& m = *made;
  RECMILL_ASSIGN_OR_RETURN(auto placed,
                           table::PlacedTables::create(plan, m.spec_.tables, all.ranks()));
  RECMILL_ASSIGN_OR_RETURN(
      m.store_, store::PlacedStore::create(m.spec_, 1, all, pool, std::move(placed), options));
  model::ModelOptions layers;
  layers.bottom = {512, 256, 64, m.spec_.tables[0].dim};
  layers.top = {512, 256, 1};
  RECMILL_ASSIGN_OR_RETURN(m.model_, model::make_dlrm(layers, m.spec_));
  RECMILL_ASSIGN_OR_RETURN(Buffer parameters, model::initial_parameters(*m.model_, 1));
  const int64_t count = m.model_->parameter_count();
  m.dense_optimizer_ = std::make_unique<train::DenseOptimizer>(
      train::DenseOptimizerOptions{}, count, std::vector<train::ParameterRange>{{0, count}});
  // As a run on one host or on several does by default.
  std::unique_ptr<train::GradientReduction> beside;
  if (!all.shares_memory()) {
    RECMILL_ASSIGN_OR_RETURN(beside, train::GradientReduction::create(all, kSlices));
  }
  m.trainer_ =
      std::make_unique<train::RankTrainer>(m.spec_, *m.model_, *m.store_, *m.dense_optimizer_, all,
                                           pool, kSlices, std::move(parameters), std::move(beside));
  RECMILL_RETURN_IF_ERROR(m.trainer_->load_parameters());
  return made;
}

std::vector<train::RankBatch> PlacedModel::draw(const ShapeDraw& draw, int64_t batches,
                                                store::Purpose purpose, Communicator& all,
                                                ThreadPool& pool) {
  const int rank = all.rank(), ranks = all.ranks();
  std::vector<train::RankBatch> drawn(batches);
  for (int64_t b = 0; b < batches; ++b) {
    train::RankBatch& batch = drawn[b];
    batch.purpose = purpose;
    batch.cut = {kRankSamples * ranks, kSlices};
    batch.first_slice = rank * kSlices / ranks;
    batch.end_slice = (rank + 1) * kSlices / ranks;
    const int64_t first = (b * ranks + rank) * kRankSamples;
    draw.draw(first, kRankSamples, batch.sparse, pool);
    batch.dense.first = first;
    batch.dense.samples = kRankSamples;
    batch.dense.columns = kDense;
    const Random random(1, Purpose::test, static_cast<uint64_t>(b * ranks + rank));
    batch.dense.values.resize(kRankSamples * kDense);
    for (size_t i = 0; i < batch.dense.values.size(); ++i)
      batch.dense.values[i] = random.uniform(i);
    batch.dense.labels.resize(kRankSamples);
    for (size_t i = 0; i < batch.dense.labels.size(); ++i)
      batch.dense.labels[i] = random.uniform64(i, 1u << 20) < 0.25 ? 1.0f : 0.0f;
  }
  return drawn;
}

Result<double> PlacedModel::go(train::RankBatch& batch) {
  batch.before.iteration = iteration_;
  const bool trains = batch.purpose == store::Purpose::train;
  batch.plan =
      trains ? std::make_shared<const StepPlan>(StepPlan{iteration_, iteration_}) : nullptr;
  RECMILL_RETURN_IF_ERROR(train::prepare(*store_, batch));
  const auto step = trains ? trainer_->train(batch, {iteration_, 1.0}) : trainer_->score(batch);
  batch.prepared.reset();
  if (!step.ok()) return step.status();
  if (trains) ++iteration_;
  return step->loss;
}

}  // namespace recmill::bench
