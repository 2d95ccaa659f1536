// SPDX-License-Identifier: Apache-2.0
#include "run/rank.h"

#include <algorithm>

#include "kernels/dense_layer/dense_layer.h"
#include "model/graphed_layers.h"
#include "model/initial_parameters.h"
#include "model/make_model.h"
#include "preprocess/run/gpu_preprocessor.h"
#include "reader/open_reader.h"
#include "run/chosen_kernels.h"
#include "run/gpu/gpu_run.h"
#include "run/gpu/make_gpu_store.h"
#include "run/hotset/hot_folder.h"
#include "run/lookahead/run_cache.h"
#include "run/memory.h"
#include "run/placement/run_placement.h"
#include "run/sample_lookups.h"
#include "step/data/hot_cold_source.h"
#include "step/data/reader_source.h"
#include "step/gpu/gpu_trainer.h"
#include "step/rank_trainer.h"
#include "store/gpu/store_on_gpu.h"
#include "store/placed/placed_store.h"
#include "store/table_store.h"
#include "store/tables/plain_store.h"

namespace recmill::train {
namespace {

bool has_rows_on_gpu(const RunOptions& options, Way way) {
  return way == Way::engine && options.device != DeviceKind::cpu &&
         options.embedding.store != StoreKind::plain;
}

bool uses_gpu(const RunOptions& options, Way way) {
  const bool preprocesses =
      way == Way::engine && options.device != DeviceKind::cpu && options.gpu.preprocess;
  return preprocesses || has_rows_on_gpu(options, way);
}

Result<std::unique_ptr<preprocess::Preprocessor>> make_preprocessor(const ResolvedRun& run, Way way,
                                                                    const RankGpu& gpu,
                                                                    ThreadPool& pool) {
  if (way == Way::plain) return preprocess::make_plain_preprocessor(run.graph, run.spec);
  if (!run.options.gpu.preprocess) return preprocess::make_preprocessor(run.graph, run.spec, pool);
  return preprocess::make_gpu_preprocessor(run.graph, run.spec, gpu.gpu,
                                           row_readers(run.options, run.ranks), gpu.compile, pool);
}

/// On the CPU.
Result<std::unique_ptr<store::EmbeddingStore>> make_store(const ResolvedRun& run, Way way,
                                                          Communicator& communicator,
                                                          ThreadPool& pool, Files& files,
                                                          HomeStart& start) {
  const auto seed = static_cast<uint64_t>(run.options.train.seed);
  if (way == Way::plain || run.options.embedding.store == StoreKind::plain) {
    RECMILL_ASSIGN_OR_RETURN(auto plain, store::PlainStore::create(run.spec, seed, pool));
    return std::unique_ptr<store::EmbeddingStore>(std::move(plain));
  }
  if (has_cache(run)) return make_cached_store(run, communicator, pool, files, start);
  RECMILL_ASSIGN_OR_RETURN(auto kernels, choose_kernels(run, files));
  if (run.options.embedding.store == StoreKind::placed) {
    RECMILL_CHECK(run.placed != nullptr, run.options.name);
    RECMILL_ASSIGN_OR_RETURN(
        auto placed, store::PlacedStore::create(run.spec, seed, communicator, pool, run.placed,
                                                sharded_options(run), std::move(kernels)));
    return std::unique_ptr<store::EmbeddingStore>(std::move(placed));
  }
  return store::create_table_store(run.spec, seed, communicator, pool, std::move(kernels));
}

// Counts the rows, which may read all of them, only where it must.
Result<LearningRate> make_learning_rate(const TrainOptions& train, reader::Reader& train_rows) {
  if (!decays_to_the_end(train)) return learning_rate_of(train, 0);
  RECMILL_ASSIGN_OR_RETURN(const int64_t rows, train_rows.rows());
  return learning_rate_of(train, rows);
}

// None where nothing is to go on meanwhile. Nor on one host: there ranks hardly wait for sums, and
// a thread more costs a hundredth.
Result<std::unique_ptr<GradientReduction>> make_reduction(const ResolvedRun& run, Way way,
                                                          Communicator& communicator) {
  if (way == Way::plain || communicator.shares_memory() || !run.options.train.overlap)
    return std::unique_ptr<GradientReduction>();
  return GradientReduction::create(communicator, run.slices);
}

std::vector<ParameterRange> trained_ranges(const model::Model& model) {
  std::vector<ParameterRange> ranges;
  for (const model::ParameterSpec& parameter : model.parameters()) {
    if (!parameter.trained) continue;
    const bool adjoins =
        !ranges.empty() && ranges.back().first + ranges.back().count == parameter.offset;
    if (adjoins) {
      ranges.back().count += parameter.size();
    } else {
      ranges.push_back({parameter.offset, parameter.size()});
    }
  }
  return ranges;
}

Status make_gpu_trainer(const ResolvedRun& run, const RankGpu& gpu, Buffer parameters,
                        Communicator& communicator, ThreadPool& pool, Rank& rank) {
  const DeviceKind device = run.options.device;
  auto* const store = dynamic_cast<store::StoreOnGpu*>(rank.store.get());
  RECMILL_CHECK(store != nullptr);
  auto layers = model::make_gpu_layers(
      device == DeviceKind::cuda ? model::LayersOn::cuda : model::LayersOn::emulated_gpu, *gpu.gpu,
      *rank.model, run.spec);
  if (!layers.ok()) return layers.status().at("device = \"" + std::string(name_of(device)) + "\"");
  rank.layers = *std::move(layers);
  const GpuRunOptions& options = run.options.gpu;
  if (options.graphs != GpuGraphs::off && !options.synchronous)
    rank.layers = std::make_unique<model::GraphedLayers>(std::move(rank.layers));
  RECMILL_ASSIGN_OR_RETURN(
      rank.trainer, GpuTrainer::make(run.spec, *rank.layers, *store, *rank.dense_optimizer,
                                     communicator, pool, std::move(parameters), gpu.compile));
  return {};
}

std::unique_ptr<BatchSource> make_source(const ResolvedRun& run, Rank& rank,
                                         const BatchSchedule& schedule, const StreamPosition& start,
                                         const std::optional<ScheduleProgress>& progress) {
  auto* const rows = dynamic_cast<HotColdRows*>(rank.train_rows.get());
  if (rows == nullptr)
    return std::make_unique<ReaderSource>(schedule, *rank.train_rows, rank.eval_rows.get(),
                                          *rank.preprocessor, start);
  const HotColdRules& rules = run.hot_folder->rules;
  const ScheduleProgress from = progress.value_or(ScheduleProgress{rules.policy.first(), {}});
  const auto losses = std::make_shared<ScheduleLosses>();
  rank.schedules = std::make_unique<ScheduleKeeper>(
      rows->batches(schedule.batch_size), rules.policy,
      place_of(start, from.state, *rows, schedule.batch_size), from.begun, losses);
  return std::make_unique<HotColdSource>(schedule, *rows, rank.eval_rows.get(), *rank.preprocessor,
                                         rules, start, from.state, losses);
}

}  // namespace

std::unique_ptr<DataStage> make_data_stage(const ResolvedRun& run, Rank& rank,
                                           const BatchSchedule& schedule,
                                           const StreamPosition& start,
                                           const std::optional<ScheduleProgress>& progress) {
  auto source = make_source(run, rank, schedule, start, progress);
  const auto queue = static_cast<size_t>(queued_batches(run.options));
  auto planner = rank.make_planner ? rank.make_planner() : nullptr;
  BatchWindow window =
      planner == nullptr ? BatchWindow(/*ahead=*/0) : BatchWindow(std::move(planner));
  return std::make_unique<DataStage>(std::move(source), std::move(window), *rank.store,
                                     rank.trainer.get(), queue);
}

Status settle(Rank& rank) {
  RECMILL_RETURN_IF_ERROR(rank.store->settle());
  return rank.trainer->settle();
}

Result<StepResult> score(Rank& rank, const RankBatch& batch) {
  UnseenMeans* const means = rank.unseen_means.get();
  if (means != nullptr) RECMILL_RETURN_IF_ERROR(means->before(batch));
  RECMILL_ASSIGN_OR_RETURN(const StepResult step, rank.trainer->score(batch));
  if (means != nullptr) RECMILL_RETURN_IF_ERROR(means->after(batch));
  return step;
}

std::unique_ptr<ThreadPool> make_pool(int threads) {
  auto pool = std::make_unique<ThreadPool>(threads);
  pool->set_thread_start(kernels::dense_layer::use_one_thread);
  return pool;
}

Result<Rank> make_rank(const ResolvedRun& run, Way way, Communicator& communicator,
                       ThreadPool& pool, Files& files) {
  const RunOptions& options = run.options;
  const auto seed = static_cast<uint64_t>(options.train.seed);
  const reader::ParserKind parser =
      way == Way::plain ? reader::ParserKind::plain : reader::ParserKind::fast;
  Rank rank;
  if (run.hot_folder != nullptr) {
    RECMILL_ASSIGN_OR_RETURN(rank.train_rows,
                             open_hot_cold_rows(run, pool, files, run.notes_inputs));
  } else {
    DataOptions data = options.data;
    data.scored.numbers = data.scored.numbers || run.notes_inputs;
    RECMILL_ASSIGN_OR_RETURN(rank.train_rows,
                             reader::open_reader(data, Subset::train, seed, pool, files, parser));
  }
  if (reader::names_evaluation_rows(options.data)) {
    RECMILL_ASSIGN_OR_RETURN(
        rank.eval_rows, reader::open_reader(options.data, Subset::eval, seed, pool, files, parser));
  }
  RankGpu gpu;
  if (uses_gpu(options, way)) {
    RECMILL_ASSIGN_OR_RETURN(gpu, open_rank_gpu(run, communicator, pool, files));
  }
  int64_t cache_on_gpu = 0;
  if (has_rows_on_gpu(options, way)) {
    RECMILL_ASSIGN_OR_RETURN(auto of_gpu, make_gpu_store(run, gpu, communicator, pool, files));
    rank.store = std::move(of_gpu.store);
    rank.home = std::move(of_gpu.home);
    cache_on_gpu = of_gpu.cache;
  } else {
    RECMILL_ASSIGN_OR_RETURN(rank.store,
                             make_store(run, way, communicator, pool, files, rank.home));
  }
  RECMILL_ASSIGN_OR_RETURN(rank.preprocessor, make_preprocessor(run, way, gpu, pool));
  if (run.hot_folder != nullptr)
    RECMILL_RETURN_IF_ERROR(fill_dictionaries(*run.hot_folder, *rank.preprocessor));
  const bool on_gpu = way == Way::engine && layers_are_on_gpu(options);
  RECMILL_ASSIGN_OR_RETURN(rank.model, on_gpu
                                           ? model::make_model_of_gpu(options.model, run.spec, seed)
                                           : model::make_model(options.model, run.spec, seed));
  RECMILL_ASSIGN_OR_RETURN(Buffer parameters, model::initial_parameters(*rank.model, seed));
  rank.dense_optimizer = std::make_unique<DenseOptimizer>(
      options.optimizer, rank.model->parameter_count(), trained_ranges(*rank.model));
  RECMILL_ASSIGN_OR_RETURN(rank.learning_rate, make_learning_rate(options.train, *rank.train_rows));
  if (on_gpu) {
    RECMILL_RETURN_IF_ERROR(
        make_gpu_trainer(run, gpu, std::move(parameters), communicator, pool, rank));
  } else {
    RECMILL_ASSIGN_OR_RETURN(auto beside, make_reduction(run, way, communicator));
    rank.trainer = std::make_unique<RankTrainer>(
        run.spec, *rank.model, *rank.store, *rank.dense_optimizer, communicator, pool, run.slices,
        std::move(parameters), std::move(beside));
  }
  RECMILL_RETURN_IF_ERROR(rank.trainer->load_parameters());
  if (way == Way::engine && has_cache(run)) {
    if (communicator.ranks() > 1) {
      RECMILL_ASSIGN_OR_RETURN(rank.planning, communicator.duplicate());
    }
    rank.make_planner = [&run, &pool, cache_on_gpu, planning = rank.planning.get()] {
      return make_step_planner(run, free_beside(run), cache_on_gpu, planning, pool);
    };
  }
  rank.unseen_means = UnseenMeans::make(run.graph, run.spec, *rank.store, communicator);
  return rank;
}

}  // namespace recmill::train
