// SPDX-License-Identifier: Apache-2.0
// Scoring takes samples in other blocks than training does: the same bits.
#include "train/rank_trainer.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "comm/threads.h"
#include "kernels/testing/random_bags.h"
#include "model/dlrm.h"
#include "model/initialize.h"
#include "model/mlp.h"
#include "schema/testing/tables_of_dims.h"
#include "store/local_store.h"

namespace recmill::train {
namespace {

constexpr uint64_t kSeed = 53;
constexpr size_t kFeatures = 4;
constexpr int64_t kDim = 16, kDense = 3, kRows = 50;

RankBatch batch_of(int64_t samples, int shards) {
  const Random random(kSeed, Purpose::test);
  RankBatch batch;
  batch.cut = {samples, shards};
  batch.end_shard = shards;
  batch.dense.samples = samples;
  batch.dense.columns = kDense;
  for (int64_t i = 0; i < samples * kDense; ++i)
    batch.dense.values.push_back(random.uniform(i, 1) - 0.5f);
  for (int64_t i = 0; i < samples; ++i)
    batch.dense.labels.push_back(random.below(2, i, 2) == 0 ? 0.0f : 1.0f);
  batch.sparse.samples = samples;
  for (uint64_t f = 0; f < kFeatures; ++f)
    batch.sparse.features.push_back(kernels::random_bags({samples, 3, kRows, false, 2}, kSeed + f));
  return batch;
}

struct Found {
  double loss;
  std::vector<float> probabilities;
  bool operator==(const Found&) const = default;
};

/// What scoring finds, or the training step before it updates.
Found found(const model::ModelOptions& options, int64_t samples, int shards, int threads,
            bool training) {
  const ModelSpec spec = tables_of_dims(std::vector(kFeatures, kDim), kRows, kDense);
  auto made = options.kind == model::ModelKind::mlp ? model::make_mlp(options, spec)
                                                    : model::make_dlrm(options, spec);
  RECMILL_CHECK(made.ok(), made.status().message());
  model::Model& model = **made;
  Pool pool(threads);
  const auto communicator = ThreadsGroup(1).communicator(0);
  auto store = store::LocalStore::create(spec, kSeed, *communicator, pool);
  auto parameters = model::initial_parameters(model, kSeed);
  RECMILL_CHECK(store.ok() && parameters.ok());
  const int64_t count = model.parameter_count();
  DenseOptimizer optimizer({}, count, std::vector<ParameterRange>{{0, count}});
  RankTrainer trainer(spec, model, **store, optimizer, *communicator, pool, shards,
                      *std::move(parameters));
  RECMILL_CHECK(trainer.load_parameters().ok());
  RankBatch batch = batch_of(samples, shards);
  store::Batch ids;
  ids.purpose = batch.purpose;
  ids.cut = batch.cut;
  ids.end_shard = shards;
  ids.sparse = &batch.sparse;
  auto prepared = (*store)->prepare(ids);
  RECMILL_CHECK(prepared.ok(), prepared.status().message());
  batch.prepared = *std::move(prepared);
  const auto result = training ? trainer.train(batch, {0, 1.0}) : trainer.score(batch);
  RECMILL_CHECK(result.ok(), result.status().message());
  return {result->loss, {result->probabilities.begin(), result->probabilities.end()}};
}

TEST(RankTrainer, scores_a_batch_with_the_bits_that_training_finds_in_it) {
  const model::ModelOptions models[] = {
      {.kind = model::ModelKind::mlp, .top = {33, 1}},
      {.kind = model::ModelKind::dlrm, .bottom = {8, kDim}, .top = {20, 1}}};
  for (const model::ModelOptions& options : models) {
    for (const int64_t samples : {0, 1, 31, 127, 300, 600}) {
      for (const int shards : {1, 8}) {
        const Found trained = found(options, samples, shards, 1, /*training=*/true);
        EXPECT_EQ(trained.probabilities.size(), static_cast<size_t>(samples));
        for (const int threads : {1, 2, 3}) {
          EXPECT_EQ(found(options, samples, shards, threads, /*training=*/false), trained)
              << samples << " samples, " << shards << " shards, " << threads << " threads, seed "
              << kSeed;
        }
      }
    }
  }
}

}  // namespace
}  // namespace recmill::train
