// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/placed/end_to_end_cases.h"

#include <fmt/format.h>

#include <deque>
#include <memory>

#include "base/clock.h"
#include "base/random.h"
#include "cli/bench/placed/placed_shape.h"
#include "cli/bench/start_together.h"
#include "comm/measure_links.h"
#include "model/dlrm.h"
#include "model/initialize.h"
#include "placement/planners.h"
#include "store/placed_store.h"
#include "train/optimizer/dense_optimizer.h"
#include "train/rank_trainer.h"

namespace recmill::cli {
namespace {

using placement::PlannerKind;

constexpr int64_t kBatches = 2, kDense = 13;
constexpr double kZipf = 1.2;
constexpr int kShards = 8;

/// A model on ranks whose rows stand as one planner says.
class PlacedModel {
 public:
  static Result<std::unique_ptr<PlacedModel>> make(const ModelSpec& spec, int64_t dim,
                                                   const PlacementPlan& plan, Communicator& all,
                                                   Pool& pool) {
    std::unique_ptr<PlacedModel> made(new PlacedModel(spec));
    PlacedModel& m = *made;
    RECMILL_ASSIGN_OR_RETURN(auto placed,
                             table::PlacedTables::create(plan, m.spec_.tables, all.ranks()));
    store::PlacedOptions options;
    options.dedup_fetch = false;
    RECMILL_ASSIGN_OR_RETURN(
        m.store_, store::PlacedStore::create(m.spec_, 1, all, pool, std::move(placed), options));
    model::ModelOptions layers;
    layers.bottom = {512, 256, 64, dim};
    layers.top = {512, 256, 1};
    RECMILL_ASSIGN_OR_RETURN(m.model_, model::make_dlrm(layers, m.spec_));
    RECMILL_ASSIGN_OR_RETURN(Buffer parameters, model::initial_parameters(*m.model_, 1));
    const int64_t count = m.model_->parameter_count();
    m.dense_optimizer_ = std::make_unique<train::DenseOptimizer>(
        train::DenseOptimizerOptions{}, count, std::vector<train::ParameterRange>{{0, count}});
    // As a run on several hosts does by default.
    RECMILL_ASSIGN_OR_RETURN(auto beside, train::GradientReduction::create(all, kShards));
    m.trainer_ = std::make_unique<train::RankTrainer>(m.spec_, *m.model_, *m.store_,
                                                      *m.dense_optimizer_, all, pool, kShards,
                                                      std::move(parameters), std::move(beside));
    RECMILL_RETURN_IF_ERROR(m.trainer_->load_parameters());
    return made;
  }

  /// The sum of losses over the global batch.
  Result<double> go(train::RankBatch& batch) {
    batch.before.iteration = iteration_;
    RECMILL_ASSIGN_OR_RETURN(
        batch.prepared, store_->prepare({iteration_, batch.purpose, batch.cut, batch.first_shard,
                                         batch.end_shard, &batch.sparse, nullptr}));
    const bool trains = batch.purpose == store::Purpose::train;
    const auto step = trains ? trainer_->train(batch, {iteration_, 1.0}) : trainer_->score(batch);
    batch.prepared.reset();
    if (!step.ok()) return step.status();
    if (trains) ++iteration_;
    return step->loss;
  }

 private:
  explicit PlacedModel(ModelSpec spec) : spec_(std::move(spec)) {}

  const ModelSpec spec_;
  std::unique_ptr<store::PlacedStore> store_;
  std::unique_ptr<model::Model> model_;
  std::unique_ptr<train::DenseOptimizer> dense_optimizer_;
  std::unique_ptr<train::RankTrainer> trainer_;
  int64_t iteration_ = 0;
};

struct Way {
  PlannerKind planner = PlannerKind::oper;
  std::unique_ptr<PlacedModel> model;
  std::vector<double> seconds;  // a batch, by repetition
};

std::vector<train::RankBatch> make_batches(const FrozenShape& shape, store::Purpose purpose,
                                           Communicator& all, Pool& pool) {
  const int rank = all.rank(), ranks = all.ranks();
  const ShapeDraw draw(shape, kZipf, kTimedSeed);
  std::vector<train::RankBatch> batches(kBatches);
  for (int64_t b = 0; b < kBatches; ++b) {
    train::RankBatch& batch = batches[b];
    batch.purpose = purpose;
    batch.cut = {kRankSamples * ranks, kShards};
    batch.first_shard = rank * kShards / ranks;
    batch.end_shard = (rank + 1) * kShards / ranks;
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
  return batches;
}

class EndToEnd {
 public:
  EndToEnd(const BenchOptions& options, Communicator& all)
      : options_(options),
        all_(all),
        pool_(std::max<int>(1, static_cast<int>(options.threads) / all.ranks())) {}

  Status run(const std::string& name, bool training, const BenchSink& sink) {
    const std::string full =
        fmt::format("end_to_end_{}_{}", training ? "training" : "inference", name);
    if (!options_.wants(full)) return {};
    const FrozenShape shape = small_shape(name);
    auto batches =
        make_batches(shape, training ? store::Purpose::train : store::Purpose::serve, all_, pool_);
    std::deque<Way> ways;
    for (const PlannerKind planner :
         {PlannerKind::oper, PlannerKind::table_wise, PlannerKind::torchrec_like})
      ways.emplace_back().planner = planner;
    RECMILL_RETURN_IF_ERROR(place(shape, training, ways));
    RECMILL_RETURN_IF_ERROR(check_answers(full, ways, batches));
    RECMILL_ASSIGN_OR_RETURN(StartTogether together, StartTogether::make(all_));
    RECMILL_RETURN_IF_ERROR(together.take_turns(
        ways.size(), options_.pairs,
        [&](size_t way, bool counts) { return time(ways[way], batches, counts); }));
    if (all_.rank() == 0) report(full, ways, together.foreign_load(), sink);
    return {};
  }

 private:
  Status place(const FrozenShape& shape, bool training, std::deque<Way>& ways) {
    ModelSpec model = small_model(shape);
    model.num_dense = kDense;
    RECMILL_ASSIGN_OR_RETURN(const AccessCounts counts,
                             draw_counts(shape, kZipf, kCountedSeed, kCounted, pool_));
    RECMILL_ASSIGN_OR_RETURN(const auto links, measure_links(all_));
    const placement::Problem problem =
        small_problem(model, counts, all_.ranks(), links, training, /*dedup=*/false);
    for (Way& way : ways) {
      RECMILL_ASSIGN_OR_RETURN(const auto proposal,
                               placement::plan_placement(problem, way.planner, {}));
      RECMILL_ASSIGN_OR_RETURN(way.model,
                               PlacedModel::make(model, shape.dim, proposal.plan, all_, pool_));
    }
    return {};
  }

  static Status check_answers(const std::string& name, std::deque<Way>& ways,
                              std::vector<train::RankBatch>& batches) {
    for (train::RankBatch& batch : batches) {
      double expected = 0;
      for (Way& way : ways) {
        RECMILL_ASSIGN_OR_RETURN(const double loss, way.model->go(batch));
        if (&way == &ways[0]) expected = loss;
        if (loss != expected)
          return Status::Failed(fmt::format("{}: the loss with {} is {}, and {} with {}", name,
                                            recmill::name_of(way.planner), loss, expected,
                                            recmill::name_of(ways[0].planner)));
      }
    }
    return {};
  }

  Status time(Way& way, std::vector<train::RankBatch>& batches, bool counts) {
    RECMILL_RETURN_IF_ERROR(all_.barrier());
    const Stopwatch watch;
    for (train::RankBatch& batch : batches) RECMILL_RETURN_IF_ERROR(way.model->go(batch).status());
    RECMILL_RETURN_IF_ERROR(all_.barrier());
    if (counts) way.seconds.push_back(watch.seconds() / kBatches);
    return {};
  }

  void report(const std::string& name, const std::deque<Way>& ways, double load,
              const BenchSink& sink) const {
    const double samples = static_cast<double>(kRankSamples) * all_.ranks();
    for (const Way& way : ways) {
      BenchLine line;
      line.bench = "placed";
      line.name = name;
      line.metric = fmt::format("samples_per_second_{}", recmill::name_of(way.planner));
      line.value = samples / median(way.seconds);
      line.unit = "samples/s";
      line.foreign_load = load;
      if (&way != &ways[0]) {
        line.rival = recmill::name_of(way.planner);
        line.metric = "samples_per_second";
        line.value = samples / median(ways[0].seconds);
        line.ratio = ratio_of({ways[0].seconds, way.seconds, load});
      }
      sink(line);
    }
  }

  const BenchOptions& options_;
  Communicator& all_;
  Pool pool_;
};

}  // namespace

Status run_end_to_end_cases(const BenchOptions& options, Communicator& all, const BenchSink& sink) {
  EndToEnd cases(options, all);
  for (const char* shape : {"avazu", "kaggle", "terabyte"})
    for (const bool training : {true, false})
      RECMILL_RETURN_IF_ERROR(cases.run(shape, training, sink));
  return {};
}

}  // namespace recmill::cli
