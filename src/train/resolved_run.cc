// SPDX-License-Identifier: Apache-2.0
#include "train/resolved_run.h"

#include <algorithm>
#include <bit>
#include <string>
#include <thread>

#include "reader/open_reader.h"
#include "train/learning_rate.h"

namespace recmill::train {
namespace {

Status check_training(const TrainOptions& train) {
  const auto refuse = [](const std::string& key, const std::string& what) {
    return Status::BadRequest("train." + key + ": " + what);
  };
  if (train.batch_size == 0) return refuse("batch_size", "must be at least 1");
  if (train.eval_batch_size == 0) return refuse("eval_batch_size", "must be at least 1");
  if (train.ranks == 0) return refuse("ranks", "must be at least 1");
  if (train.queue == 0) return refuse("queue", "must be at least 1");
  if (train.epochs == 0) return refuse("epochs", "must be at least 1");
  if (train.shards != 0 && !std::has_single_bit(static_cast<uint64_t>(train.shards))) {
    return refuse("shards", "must be a power of two, is " + std::to_string(train.shards));
  }
  if (train.shards > 1024) return refuse("shards", "must be at most 1024");
  if (!(train.negative_keep > 0.0 && train.negative_keep <= 1.0)) {
    return refuse("negative_keep", "must be above 0 and at most 1");
  }
  if (train.negative_keep < 1.0 && decays_to_the_end(train)) {
    return refuse(
        "decay.iterations",
        "must be given with train.negative_keep: where training ends is not known before");
  }
  return {};
}

}  // namespace

BatchSchedule ResolvedRun::schedule(int rank) const {
  const TrainOptions& train = options.train;
  return {.batch_size = train.batch_size,
          .eval_batch_size = train.eval_batch_size,
          .epochs = train.epochs,
          .iterations = train.iterations,
          .evaluate_every = train.evaluate_every,
          .negative_keep = train.negative_keep,
          .seed = static_cast<uint64_t>(train.seed),
          .shards = shards,
          .rank = rank,
          .ranks = ranks};
}

int64_t ResolvedRun::samples_in_all(int64_t rows) const {
  const int64_t by_epochs = rows * options.train.epochs;
  const int64_t by_iterations = options.train.iterations * options.train.batch_size;
  return options.train.iterations > 0 ? std::min(by_epochs, by_iterations) : by_epochs;
}

Result<ResolvedRun> resolve_run(const RunOptions& options, const DataSchema& schema, int cores) {
  RECMILL_RETURN_IF_ERROR(check_training(options.train));
  ResolvedRun run;
  run.options = options;
  run.schema = schema;
  const TrainOptions& train = options.train;
  run.shards = train.shards > 0 ? static_cast<int>(train.shards)
                                : ShardCut::default_shards(train.batch_size);
  run.ranks = static_cast<int>(train.ranks);
  run.threads = train.threads > 0 ? static_cast<int>(train.threads) : cores;
  if (run.ranks > run.shards) {
    return Status::BadRequest("train.ranks: " + std::to_string(run.ranks) +
                              " is more than train.shards, which is " + std::to_string(run.shards));
  }
  RECMILL_ASSIGN_OR_RETURN(auto resolved,
                           preprocess::resolve(schema, options.embedding, options.tables,
                                               options.features, options.preprocess));
  RECMILL_RETURN_IF_ERROR(model::check_options(options.model, resolved.model));
  run.spec = model::with_model_tables(std::move(resolved.model), options.model);
  run.graph = std::move(resolved.graph);
  return run;
}

int machine_cores() {
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

Result<ResolvedRun> resolve_run(const RunOptions& options, Files& files) {
  Pool pool(1);
  RECMILL_ASSIGN_OR_RETURN(
      const auto rows, reader::open_reader(options.data, Subset::train,
                                           static_cast<uint64_t>(options.train.seed), pool, files));
  return resolve_run(options, rows->schema(), machine_cores());
}

}  // namespace recmill::train
