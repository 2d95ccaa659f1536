// SPDX-License-Identifier: Apache-2.0
// Scoring takes samples in other blocks than training does, and ranks may sum dense gradients while
// they update rows: the same bits.
#include "step/rank_trainer.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "comm/threads.h"
#include "kernels/testing/random_bags.h"
#include "model/dlrm.h"
#include "model/initial_parameters.h"
#include "model/mlp.h"
#include "schema/testing/tables_of_dims.h"
#include "store/table_store.h"
#include "store/testing/planned_store.h"

namespace recmill::train {
namespace {

constexpr uint64_t kSeed = 53;
constexpr size_t kFeatures = 4;
constexpr int64_t kDim = 16, kDense = 3, kRows = 50;

RankBatch batch_of(int64_t samples, int slices) {
  const Random random(kSeed, Purpose::test);
  RankBatch batch;
  batch.cut = {samples, slices};
  batch.end_slice = slices;
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
  std::vector<float> logits;
  bool operator==(const Found&) const = default;
};

/// What scoring finds, or the training step before it updates.
Found found(const model::ModelOptions& options, int64_t samples, int slices, int threads,
            bool training) {
  const ModelSpec spec = tables_of_dims(std::vector(kFeatures, kDim), kRows, kDense);
  auto made = options.kind == model::ModelKind::mlp ? model::make_mlp(options, spec)
                                                    : model::make_dlrm(options, spec);
  RECMILL_CHECK(made.ok(), made.status().message());
  model::Model& model = **made;
  ThreadPool pool(threads);
  const auto communicator = ThreadsGroup(1).communicator(0);
  auto store = store::create_table_store(spec, kSeed, *communicator, pool);
  auto parameters = model::initial_parameters(model, kSeed);
  RECMILL_CHECK(store.ok() && parameters.ok());
  const int64_t count = model.parameter_count();
  DenseOptimizer optimizer({}, count, std::vector<ParameterRange>{{0, count}});
  RankTrainer trainer(spec, model, **store, optimizer, *communicator, pool, slices,
                      *std::move(parameters));
  RECMILL_CHECK(trainer.load_parameters().ok());
  RankBatch batch = batch_of(samples, slices);
  batch.plan = std::make_shared<const StepPlan>();
  const Status status = prepare(**store, batch);
  RECMILL_CHECK(status.ok(), status.message());
  const auto result = training ? trainer.train(batch, {0, 1.0}) : trainer.score(batch);
  RECMILL_CHECK(result.ok(), result.status().message());
  return {result->loss, {result->logits.begin(), result->logits.end()}};
}

/// A store whose update fails where `fails` says so.
class FailingStore final : public store::testing::ForwardingStore {
 public:
  FailingStore(std::unique_ptr<store::EmbeddingStore> inner, bool fails)
      : ForwardingStore(std::move(inner)), fails_(fails) {}
  Status update(std::span<const store::Update> updates, const store::Step& step,
                Stream& stream) override {
    return fails_ ? Status::Failed("no room") : inner().update(updates, step, stream);
  }

 private:
  const bool fails_;
};

/// Trains a DLRM for three iterations on so many ranks; the parameters of rank 0 go to `end`.
Status train_on(int ranks, bool overlap, int failing, std::vector<float>& end) {
  constexpr int kSlices = 8;
  constexpr int64_t kSamples = 300;
  const ModelSpec spec = tables_of_dims(std::vector(kFeatures, kDim), kRows, kDense);
  return run_ranks(ranks, [&](Communicator& communicator) -> Status {
    const int rank = communicator.rank();
    RECMILL_ASSIGN_OR_RETURN(
        const auto model,
        model::make_dlrm({.kind = model::ModelKind::dlrm, .bottom = {8, kDim}, .top = {20, 1}},
                         spec));
    ThreadPool pool(1);
    RECMILL_ASSIGN_OR_RETURN(auto local,
                             store::create_table_store(spec, kSeed, communicator, pool));
    FailingStore rows(std::make_unique<store::testing::PlannedStore>(std::move(local)),
                      rank == failing);
    RECMILL_ASSIGN_OR_RETURN(Buffer parameters, model::initial_parameters(*model, kSeed));
    const int64_t count = model->parameter_count();
    DenseOptimizer optimizer({}, count, std::vector<ParameterRange>{{0, count}});
    std::unique_ptr<GradientReduction> beside;
    if (overlap) {
      RECMILL_ASSIGN_OR_RETURN(beside, GradientReduction::create(communicator, kSlices));
    }
    RankTrainer trainer(spec, *model, rows, optimizer, communicator, pool, kSlices,
                        std::move(parameters), std::move(beside));
    RECMILL_RETURN_IF_ERROR(trainer.load_parameters());
    const RankBatch whole = batch_of(kSamples, kSlices);
    const SliceRange own = slices_of_rank(rank, ranks, kSlices);
    for (int64_t iteration = 0; iteration < 3; ++iteration) {
      RankBatch batch;
      batch.cut = whole.cut;
      batch.first_slice = own.begin;
      batch.end_slice = own.end;
      const int64_t first = whole.cut.begin(own.begin), last = whole.cut.end(own.end - 1);
      copy_samples(whole.dense, first, last, batch.dense);
      copy_samples(whole.sparse, first, last, batch.sparse);
      batch.before.iteration = iteration;
      batch.plan = std::make_shared<const StepPlan>(StepPlan{iteration, iteration});
      RECMILL_RETURN_IF_ERROR(prepare(rows, batch));
      RECMILL_RETURN_IF_ERROR(trainer.train(batch, {iteration, 1.0}).status());
    }
    if (rank == 0) end.assign(trainer.parameters().begin(), trainer.parameters().end());
    return {};
  });
}

TEST(RankTrainer, ranks_end_with_the_bits_of_one_whether_or_not_sums_go_on_beside_rows) {
  std::vector<float> one, several;
  ASSERT_TRUE(train_on(1, false, -1, one).ok());
  for (const int ranks : {2, 3, 8}) {
    for (const bool overlap : {false, true}) {
      const Status status = train_on(ranks, overlap, -1, several);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(several, one) << ranks << " ranks, overlap " << overlap << ", seed " << kSeed;
    }
  }
}

TEST(RankTrainer, a_rank_whose_rows_cannot_be_updated_ends_all_and_is_named) {
  std::vector<float> end;
  for (const bool overlap : {false, true})
    EXPECT_EQ(train_on(3, overlap, 1, end).message(), "rank 1: no room");
}

TEST(RankTrainer, scores_a_batch_with_the_bits_that_training_finds_in_it) {
  const model::ModelOptions models[] = {
      {.kind = model::ModelKind::mlp, .top = {33, 1}},
      {.kind = model::ModelKind::dlrm, .bottom = {8, kDim}, .top = {20, 1}}};
  for (const model::ModelOptions& options : models) {
    for (const int64_t samples : {0, 1, 31, 127, 300, 600}) {
      for (const int slices : {1, 8}) {
        const Found trained = found(options, samples, slices, 1, /*training=*/true);
        EXPECT_EQ(trained.logits.size(), static_cast<size_t>(samples));
        for (const int threads : {1, 2, 3}) {
          EXPECT_EQ(found(options, samples, slices, threads, /*training=*/false), trained)
              << samples << " samples, " << slices << " slices, " << threads << " threads, seed "
              << kSeed;
        }
      }
    }
  }
}

}  // namespace
}  // namespace recmill::train
