// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "bench/kernels/feature_rivals.h"
#include "bench/kernels/kernels_cases.h"
#include "bench/kernels/schedules.h"
#include "bench/kernels/sides.h"
#include "comm/threads.h"
#include "model/initial_parameters.h"
#include "model/make_model.h"
#include "step/metrics/metrics.h"
#include "step/optimizer/dense_optimizer.h"
#include "step/rank_trainer.h"
#include "store/table_store.h"

namespace recmill::bench {
namespace {

constexpr double kTolerance = 1e-4;  // of probabilities

/// The run's model over a store with the rows that every side starts from.
class ScoredModel {
 public:
  /// `workload` outlives it; takes its test batches.
  static Result<std::unique_ptr<ScoredModel>> make(KernelWorkload& workload,
                                                   const store::StoreKernels& kernels) {
    auto made = std::make_unique<ScoredModel>();
    const train::ResolvedRun& run = workload.run;
    const auto seed = static_cast<uint64_t>(run.options.train.seed);
    ThreadPool& pool = *workload.pool;
    RECMILL_ASSIGN_OR_RETURN(
        made->store_,
        store::create_table_store(run.spec, seed, *made->communicator_, pool, kernels));
    RECMILL_RETURN_IF_ERROR(write_initial_rows(run.spec, *made->store_));
    RECMILL_ASSIGN_OR_RETURN(made->model_, model::make_model(run.options.model, run.spec, seed));
    const int64_t count = made->model_->parameter_count();
    RECMILL_ASSIGN_OR_RETURN(Buffer parameters, model::initial_parameters(*made->model_, seed));
    made->optimizer_ = std::make_unique<train::DenseOptimizer>(
        run.options.optimizer, count, std::vector<train::ParameterRange>{{0, count}});
    made->trainer_ = std::make_unique<train::RankTrainer>(run.spec, *made->model_, *made->store_,
                                                          *made->optimizer_, *made->communicator_,
                                                          pool, run.slices, std::move(parameters));
    RECMILL_RETURN_IF_ERROR(made->trainer_->load_parameters());
    for (const SparseBatch& sparse : workload.test_batches) {
      train::RankBatch& batch = made->batches_.emplace_back();
      batch.purpose = store::Purpose::evaluate;
      batch.cut = {sparse.samples, run.slices};
      batch.end_slice = run.slices;
      batch.sparse = sparse;
      batch.dense.samples = sparse.samples;
      batch.dense.labels.assign(sparse.samples, 0.0f);
    }
    return made;
  }

  std::span<const float> parameters() { return trainer_->parameters(); }

  /// Logits of a batch; what is not preparation is added to `kernels_seconds`.
  Result<std::span<const float>> score(int64_t index) {
    train::RankBatch& batch = batches_[index];
    store::Batch ids;
    ids.purpose = batch.purpose;
    ids.cut = batch.cut;
    ids.end_slice = batch.end_slice;
    ids.sparse = &batch.sparse;
    RECMILL_ASSIGN_OR_RETURN(batch.prepared, store_->prepare(ids));
    const Stopwatch watch;
    RECMILL_ASSIGN_OR_RETURN(const train::StepResult result, trainer_->score(batch));
    kernels_seconds += watch.seconds();
    batch.prepared.reset();
    return result.logits;
  }

  double kernels_seconds = 0.0;

 private:
  std::unique_ptr<Communicator> communicator_ = ThreadsGroup(1).communicator(0);
  std::unique_ptr<store::EmbeddingStore> store_;
  std::unique_ptr<model::Model> model_;
  std::unique_ptr<train::DenseOptimizer> optimizer_;
  std::unique_ptr<train::RankTrainer> trainer_;
  std::vector<train::RankBatch> batches_;
};

Status check_scores(ScoredModel& ours, FeatureRivals& rivals, const std::string& system) {
  RECMILL_ASSIGN_OR_RETURN(const auto answer, rivals.lookup(system, 0));
  RECMILL_ASSIGN_OR_RETURN(const auto found, ours.score(0));
  if (answer.size() != found.size()) return Status::Failed(system + ": another number of scores");
  for (size_t i = 0; i < answer.size(); ++i) {
    const double own = train::metrics::probability_of(found[i]);
    if (!(std::fabs(answer[i] - own) <= kTolerance))
      return Status::Failed(system + ": score " + std::to_string(i) + " is " +
                            std::to_string(answer[i]) + ", ours " + std::to_string(own));
  }
  return {};
}

}  // namespace

Status run_mlp_case(const std::string& name, const train::ResolvedRun& run,
                    const BenchOptions& options, const BenchSink& sink) {
  if (run.options.model.kind != model::ModelKind::mlp || run.spec.num_dense != 0)
    return Status::BadRequest(name + ": the model must be mlp without dense columns");
  const KernelsBudget budget = kernels_budget(options);
  RECMILL_ASSIGN_OR_RETURN(const TunedKernels tuned,
                           tuned_kernels(run, budget.tuning_seconds, posix_files()));
  RECMILL_ASSIGN_OR_RETURN(KernelWorkload workload,
                           KernelWorkload::make(run, {0, budget.batches}, posix_files()));
  RECMILL_ASSIGN_OR_RETURN(const auto ours, ScoredModel::make(workload, tuned.kernels));
  Sides sides;
  std::vector<double> kernel_times;  // [repetitions], seconds a batch
  const size_t place = sides.add_ours([&](std::span<const int64_t> order) -> Result<double> {
    ours->kernels_seconds = 0.0;
    const Stopwatch watch;
    for (int64_t batch : order) RECMILL_RETURN_IF_ERROR(ours->score(batch).status());
    kernel_times.push_back(ours->kernels_seconds / static_cast<double>(order.size()));
    return watch.seconds();
  });
  const auto batches = static_cast<int64_t>(workload.test_batches.size());
  const int threads = workload.pool->threads();
  const std::string systems[] = {"torch_embeddingbag_mlp", "fbgemm_tbe_mlp"};
  std::optional<FeatureRivals> rivals;
  std::vector<pid_t> own;
  if (options.rivals) {
    FeatureRivalsRequest request;
    request.layers = {run.options.model.top, ours->parameters()};
    RECMILL_ASSIGN_OR_RETURN(auto started, FeatureRivals::start(workload, options, request));
    rivals.emplace(std::move(started));
    own = {rivals->pid()};
    for (const std::string& system : systems) {
      RECMILL_RETURN_IF_ERROR(check_scores(*ours, *rivals, system));
      sides.add(system, rivals->contender(system, threads), place);
    }
  }
  RECMILL_RETURN_IF_ERROR(sides.run(batches, budget, own));
  sides.report(name, sink);
  if (!options.rivals) sink(sides.line(name, place));
  BenchLine line = sides.line(name, place);
  line.metric = "kernel_time_per_batch";
  const double seconds = median(kernel_times);
  line.value = seconds * 1e3;
  if (!options.rivals) return {};
  for (const std::string& system : systems) {
    RECMILL_ASSIGN_OR_RETURN(const double theirs, rivals->operation_seconds(system, threads));
    line.rival = system;
    line.ratio = {theirs / seconds, 0.0};
    sink(line);
  }
  return {};
}

}  // namespace recmill::bench
