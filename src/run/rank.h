// SPDX-License-Identifier: Apache-2.0
// Everything that one rank holds, made from a resolved run.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "comm/communicator.h"
#include "device/thread_pool.h"
#include "model/gpu_layers.h"
#include "model/model.h"
#include "preprocess/run/preprocessor.h"
#include "reader/reader.h"
#include "run/lookahead/home_start.h"
#include "run/resolved_run.h"
#include "step/data/data_stage.h"
#include "step/data/schedule_keeper.h"
#include "step/learning_rate.h"
#include "step/optimizer/dense_optimizer.h"
#include "step/trainer.h"
#include "step/unseen_means.h"
#include "store/embedding_store.h"

namespace recmill::train {

/// How a run is carried out: by the engine, or by the plain references of parser, preprocessing and
/// store that `verify` compares it with.
enum class Way { engine, plain };

struct Rank {
  std::unique_ptr<reader::Reader> train_rows;
  std::unique_ptr<reader::Reader> eval_rows;  // null: the data names no evaluation rows
  std::unique_ptr<preprocess::Preprocessor> preprocessor;
  std::unique_ptr<store::EmbeddingStore> store;
  HomeStart home;  // of a store with a cache
  std::unique_ptr<model::Model> model;
  std::unique_ptr<model::GpuLayers> layers;  // null: the CPU's
  std::unique_ptr<DenseOptimizer> dense_optimizer;
  LearningRate learning_rate;
  std::unique_ptr<Trainer> trainer;           // refers to all of the above
  std::unique_ptr<UnseenMeans> unseen_means;  // null: no table asks for them
  /// Of the last data stage, where hot and cold batches are apart; else null.
  std::unique_ptr<ScheduleKeeper> schedules;
  std::unique_ptr<Communicator> planning;  // between planners of several ranks; else null
  /// Of each data stage: what plans the steps of a store that looks ahead; null: nothing does.
  std::function<std::unique_ptr<StepPlanner>()> make_planner;
};

/// Makes a rank with its initial rows and parameters, a function of the run's seed. `run`, `pool`,
/// `files` and the communicator outlive it.
Result<Rank> make_rank(const ResolvedRun& run, Way way, Communicator& communicator,
                       ThreadPool& pool, Files& files);

/// The rank's batches from `start` on, at which its preprocessor's state is, and the order of hot
/// and cold ones `progress`. The rank outlives it. With a cache of several ranks stages wait for
/// each other: where one rank fails, its communicator is aborted before the stage goes.
std::unique_ptr<DataStage> make_data_stage(const ResolvedRun& run, Rank& rank,
                                           const BatchSchedule& schedule,
                                           const StreamPosition& start = {},
                                           const std::optional<ScheduleProgress>& progress = {});

/// Rows, parameters and optimizer state become those after the last step. Collective.
Status settle(Rank& rank);

/// Scores a batch that is not trained, with what stands in for unseen ids. Collective.
Result<StepResult> score(Rank& rank, const RankBatch& batch);

/// A pool whose threads keep Torch, oneDNN and OpenMP to one thread each.
std::unique_ptr<ThreadPool> make_pool(int threads);

}  // namespace recmill::train
