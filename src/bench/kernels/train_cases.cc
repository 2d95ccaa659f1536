// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/random.h"
#include "bench/kernels/feature_rivals.h"
#include "bench/kernels/kernels_cases.h"
#include "bench/kernels/memory_limit.h"
#include "bench/kernels/schedules.h"
#include "bench/kernels/sides.h"
#include "comm/threads.h"
#include "store/table_store.h"

namespace recmill::bench {
namespace {

constexpr int64_t kCheckedBatch = 0;
constexpr int64_t kTrainedBeforeCheck[] = {0, 1, 2};

/// A store with the initial rows of all sides, and what its batches are trained with.
class TrainedStore {
 public:
  /// `workload`, `batches` (for their layout) and `gradient` outlive it.
  static Result<std::unique_ptr<TrainedStore>> make(const KernelWorkload& workload,
                                                    const store::StoreKernels& kernels,
                                                    const PoolBatches& batches,
                                                    std::span<const float> gradient,
                                                    ThreadPool& pool) {
    auto made = std::make_unique<TrainedStore>(workload, batches, pool);
    const ModelSpec& spec = workload.run.spec;
    RECMILL_ASSIGN_OR_RETURN(
        made->store_, store::create_table_store(spec, 1, *made->communicator_, pool, kernels));
    RECMILL_RETURN_IF_ERROR(write_initial_rows(spec, *made->store_));
    int64_t column = 0;
    for (const kernels::PoolTask& task : batches.tasks(0)) {
      made->outputs_.push_back({task.out, task.stride});
      made->gradients_.push_back({gradient.data() + column, batches.columns()});
      column += task.rows.dim;
    }
    return made;
  }
  TrainedStore(const KernelWorkload& workload, const PoolBatches& batches, ThreadPool& pool)
      : run_(workload.run), batches_(batches), pool_(pool) {}

  /// Into the outputs of the batches' tasks; with `train` the gradient's step too.
  Status step(int64_t index, bool train) {
    const SparseBatch& sparse = batches_.batches()[index];
    store::Batch batch;
    batch.iteration = iteration_;
    batch.purpose = train ? store::Purpose::train : store::Purpose::evaluate;
    batch.cut = {sparse.samples, run_.slices};
    batch.end_slice = run_.slices;
    batch.sparse = &sparse;
    batch.plan = std::make_shared<const StepPlan>(StepPlan{iteration_, iteration_});
    Stream stream(pool_);
    RECMILL_ASSIGN_OR_RETURN(const auto prepared, store_->prepare(batch));
    RECMILL_RETURN_IF_ERROR(store_->lookup(*prepared, outputs_, stream));
    if (!train) return {};
    const store::Update update{prepared.get(), gradients_};
    return store_->update({&update, 1}, {iteration_++, 1.0}, stream);
  }

  Contender contender(bool train = true) {
    return [this, train](std::span<const int64_t> order) -> Result<double> {
      const Stopwatch watch;
      for (int64_t batch : order) RECMILL_RETURN_IF_ERROR(step(batch, train));
      return watch.seconds();
    };
  }

 private:
  const train::ResolvedRun& run_;
  const PoolBatches& batches_;
  ThreadPool& pool_;
  std::unique_ptr<Communicator> communicator_ = ThreadsGroup(1).communicator(0);
  std::unique_ptr<store::EmbeddingStore> store_;
  std::vector<store::FeatureOutput> outputs_;
  std::vector<store::FeatureGradient> gradients_;
  int64_t iteration_ = 0;
};

/// Trains the same batches on both sides and compares what they then look up.
Status check_training(TrainedStore& ours, FeatureRivals& rivals, const PoolBatches& batches) {
  for (int64_t batch : kTrainedBeforeCheck)
    RECMILL_RETURN_IF_ERROR(ours.step(batch % batches.count(), true));
  std::vector<int64_t> trained;
  for (int64_t batch : kTrainedBeforeCheck) trained.push_back(batch % batches.count());
  RECMILL_ASSIGN_OR_RETURN(const auto answer, rivals.lookup("fbgemm_tbe", kCheckedBatch, trained));
  RECMILL_RETURN_IF_ERROR(ours.step(kCheckedBatch, false));
  return check_outputs(batches, kCheckedBatch, answer);
}

Result<Buffer> random_gradient(const PoolBatches& batches) {
  int64_t samples = 0;
  for (const SparseBatch& batch : batches.batches()) samples = std::max(samples, batch.samples);
  RECMILL_ASSIGN_OR_RETURN(Buffer gradient,
                           Buffer::allocate(samples * batches.columns() * sizeof(float)));
  const Random random(7, Purpose::test);
  const auto values = gradient.as<float>();
  for (int64_t i = 0; i < samples * batches.columns(); ++i)
    values[i] = (random.uniform(i, 1) - 0.5f) * 0.01f;
  return gradient;
}

}  // namespace

Status run_train_case(const std::string& name, const train::ResolvedRun& run,
                      const BenchOptions& options, const BenchSink& sink) {
  for (const TableSpec& table : run.spec.tables) {
    if (table.optimizer.kind != OptimizerKind::rowwise_adagrad || table.frozen)
      return Status::BadRequest(name + ": trains by row-wise Adagrad alone");
  }
  const KernelsBudget budget = kernels_budget(options);
  RECMILL_ASSIGN_OR_RETURN(const TunedKernels tuned,
                           tuned_kernels(run, budget.tuning_seconds, posix_files()));
  RECMILL_ASSIGN_OR_RETURN(const KernelWorkload workload,
                           KernelWorkload::make(run, {0, budget.batches}, posix_files()));
  RECMILL_ASSIGN_OR_RETURN(const PoolBatches batches,
                           PoolBatches::make(workload.features(), workload.test_batches));
  RECMILL_ASSIGN_OR_RETURN(const Buffer gradient, random_gradient(batches));
  const auto values = gradient.as<float>();
  ThreadPool one(1);
  RECMILL_ASSIGN_OR_RETURN(const auto ours, TrainedStore::make(workload, tuned.kernels, batches,
                                                               values, *workload.pool));
  RECMILL_ASSIGN_OR_RETURN(const auto ours_1t,
                           TrainedStore::make(workload, tuned.kernels, batches, values, one));
  Sides sides;
  const size_t all = sides.add_ours(ours->contender());
  const size_t single = sides.add_ours(ours_1t->contender());
  std::optional<FeatureRivals> rivals;
  std::vector<pid_t> own;
  if (options.rivals) {
    RECMILL_ASSIGN_OR_RETURN(auto started,
                             FeatureRivals::start(workload, options, {.gradient = values}));
    rivals.emplace(std::move(started));
    own = {rivals->pid()};
    RECMILL_RETURN_IF_ERROR(check_training(*ours, *rivals, batches));
    sides.add("fbgemm_tbe", rivals->contender("fbgemm_tbe", workload.pool->threads()), all);
    sides.add("fbgemm_tbe_1t", rivals->contender("fbgemm_tbe", 1), single);
  }
  RECMILL_RETURN_IF_ERROR(sides.run(batches.count(), budget, own));
  sides.report(name, sink);
  if (!options.rivals) sink(sides.line(name, all));
  return {};
}

Status run_empty_case(const std::string& name, const train::ResolvedRun& run,
                      const BenchOptions& options, const BenchSink& sink) {
  const KernelsBudget budget = kernels_budget(options);
  RECMILL_ASSIGN_OR_RETURN(const KernelWorkload workload,
                           KernelWorkload::make(run, {0, budget.batches}, posix_files()));
  RECMILL_ASSIGN_OR_RETURN(const PoolBatches batches,
                           PoolBatches::make(workload.features(), workload.test_batches));
  const Buffer no_gradient;
  RECMILL_ASSIGN_OR_RETURN(
      const auto ours,
      TrainedStore::make(workload, {}, batches, no_gradient.as<float>(), *workload.pool));
  RECMILL_ASSIGN_OR_RETURN(Contender streams, memory_limit(batches, *workload.pool));
  Sides sides;
  const size_t lookups = sides.add_ours(ours->contender(/*train=*/false));
  const size_t limit = sides.add_ours(std::move(streams));
  RECMILL_RETURN_IF_ERROR(sides.run(batches.count(), budget, {}));
  BenchLine line = sides.line(name, lookups);
  line.limit = sides.seconds(limit) * 1e3;
  line.of_limit = sides.seconds(limit) / sides.seconds(lookups);
  sink(line);
  return {};
}

train::RunOptions empty_features(train::RunOptions settings) {
  settings.name = "empty_features";
  train::WorkloadLine line;
  line.kind = train::LineKind::fixed;
  line.count = 10000;
  line.coverage = 0.0;
  line.rows = 64;
  line.dims = {8};
  settings.workload.lines = {line};
  settings.tune.batch_sizes = {128};
  settings.data.synthetic.planted.columns = 8;
  return settings;
}

}  // namespace recmill::bench
