// SPDX-License-Identifier: Apache-2.0
#include "train/resolved_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "kernels/tune/record.h"
#include "reader/open_reader.h"
#include "train/expand_workload.h"
#include "train/learning_rate.h"

namespace recmill::train {
namespace {

constexpr int64_t kMostShards = 1024;
constexpr int64_t kMostSamples = int64_t{1} << 24;  // of a batch

Status check_tuning(const TuneOptions& tune) {
  for (size_t i = 0; i < tune.batch_sizes.size(); ++i) {
    if (tune.batch_sizes[i] >= 1 && tune.batch_sizes[i] <= kMostSamples) continue;
    return Status::BadRequest("tune.batch_sizes[" + std::to_string(i) + "]: must be in [1, " +
                              std::to_string(kMostSamples) + "], is " +
                              std::to_string(tune.batch_sizes[i]));
  }
  return {};
}

Status check_training(const TrainOptions& train) {
  const auto refuse = [](const std::string& key, const std::string& what) {
    return Status::BadRequest("train." + key + ": " + what);
  };
  // Above them is no run, and no product of them with rows or bytes overflows.
  constexpr int64_t kMostEpochs = 1'000'000;
  const struct {
    const char* key;
    int64_t value, least, most;
  } limits[] = {{"batch_size", train.batch_size, 1, kMostSamples},
                {"eval_batch_size", train.eval_batch_size, 1, kMostSamples},
                {"ranks", train.ranks, 0, kMostShards},
                {"threads", train.threads, 0, 4096},
                {"queue", train.queue, 1, 4096},
                {"epochs", train.epochs, 1, kMostEpochs},
                {"window", train.window, 0, int64_t{1} << 32}};
  for (const auto& [key, value, least, most] : limits) {
    if (value < least) return refuse(key, "must be at least " + std::to_string(least));
    if (value > most) {
      return refuse(key,
                    "must be at most " + std::to_string(most) + ", is " + std::to_string(value));
    }
  }
  if (train.shards != 0 && !std::has_single_bit(static_cast<uint64_t>(train.shards))) {
    return refuse("shards", "must be a power of two, is " + std::to_string(train.shards));
  }
  if (train.shards > kMostShards) {
    return refuse("shards", "must be at most " + std::to_string(kMostShards));
  }
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

Status check_placement(const PlacementOptions& placement) {
  const auto refuse = [](const char* key, const char* what, double is) {
    return Status::BadRequest(fmt::format("placement.{}: must {}, is {:g}", key, what, is));
  };
  if (!(placement.extra_memory >= 0))
    return refuse("extra_memory", "not be negative", placement.extra_memory);
  if (!(placement.replan_gain > 0))
    return refuse("replan_gain", "be above 0", placement.replan_gain);
  for (const auto& [key, share] : {std::pair{"access_threshold", placement.access_threshold},
                                   {"memory_threshold", placement.memory_threshold},
                                   {"balance", placement.balance}})
    if (!(share > 0 && share <= 1)) return refuse(key, "be above 0 and at most 1", share);
  return {};
}

/// Why the run has one rank; empty: it may have several.
std::string one_rank_of(const RunOptions& options) {
  return options.embedding.store == preprocess::StoreKind::plain ? "embedding.store = \"plain\""
                                                                 : "";
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

// What stores of GPUs do not have yet is refused, not left out.
Status check_device(const RunOptions& options) {
  if (!(options.gpu.kernel_seconds > 0.0))
    return Status::BadRequest("gpu.kernel_seconds: must be more than 0");
  if (!(options.gpu.memory_gib >= 0.0))
    return Status::BadRequest("gpu.memory_gib: must be at least 0");
  if (options.gpu.preprocess && options.device == DeviceKind::cpu)
    return Status::BadRequest("gpu.preprocess: device = \"cpu\" has no GPU to preprocess on");
  const bool graphs = options.gpu.graphs == GpuGraphs::on;
  if (graphs && (options.device == DeviceKind::cpu || options.train.deterministic))
    return Status::BadRequest(
        "gpu.graphs: layers are the CPU's, but with a GPU as device and train.deterministic = "
        "false");
  if (graphs && options.gpu.synchronous)
    return Status::BadRequest("gpu.graphs: gpu.synchronous ends each kernel before the next");
  if (options.device == DeviceKind::cpu) return {};
  const std::string device = "device = \"" + std::string(name_of(options.device)) + "\"";
  const Transport other =
      options.device == DeviceKind::cuda ? Transport::nccl_emulated : Transport::nccl;
  if (options.train.transport == other)
    return Status::BadRequest("train.transport: \"" + std::string(name_of(other)) +
                              "\" is between other GPUs than those of " + device);
  if (options.embedding.store != preprocess::StoreKind::local)
    return Status::BadRequest("embedding.store: " + device + " has \"local\" alone");
  if (!options.kernels.templates.empty())
    return Status::BadRequest("kernels.templates: templates of your own run on device = \"cpu\"");
  const auto is_split = [](const std::optional<Sharding>& sharding) {
    return sharding.value_or(Sharding::table) != Sharding::table;
  };
  const std::string whole = "sharding: " + device + " has \"table\" alone";
  if (is_split(options.embedding.sharding)) return Status::BadRequest("embedding." + whole);
  for (const preprocess::TableOptions& table : options.tables)
    if (is_split(table.sharding)) return Status::BadRequest("table '" + table.name + "': " + whole);
  return {};
}

int ResolvedRun::most_ranks() const {
  return one_rank_of(options).empty() ? shards : 1;
}

int64_t ResolvedRun::samples_in_all(int64_t rows) const {
  const int64_t by_epochs = rows * options.train.epochs;
  const int64_t iterations = options.train.iterations, batch = options.train.batch_size;
  const bool ends_before = iterations > 0 && iterations <= by_epochs / batch;
  return ends_before ? iterations * batch : by_epochs;
}

Result<ResolvedRun> resolve_run(const RunOptions& options, const DataSchema& schema, int cores) {
  RECMILL_RETURN_IF_ERROR(check_training(options.train));
  RECMILL_RETURN_IF_ERROR(check_tuning(options.tune));
  RECMILL_RETURN_IF_ERROR(check_placement(options.placement));
  RECMILL_RETURN_IF_ERROR(check_device(options));
  ResolvedRun run;
  RECMILL_ASSIGN_OR_RETURN(run.options, expand_workload(options));
  run.schema = schema;
  const TrainOptions& train = run.options.train;
  run.shards = train.shards > 0 ? static_cast<int>(train.shards)
                                : ShardCut::default_shards(train.batch_size);
  run.ranks = static_cast<int>(std::max<int64_t>(1, train.ranks));
  run.threads = train.threads > 0 ? static_cast<int>(train.threads) : cores;
  if (run.ranks > run.shards) {
    return Status::BadRequest("train.ranks: " + std::to_string(run.ranks) +
                              " is more than train.shards, which is " + std::to_string(run.shards));
  }
  if (run.ranks > run.most_ranks()) {
    return Status::BadRequest("train.ranks: " + std::to_string(run.ranks) + " is more than " +
                              one_rank_of(run.options) + " has, which is 1");
  }
  RECMILL_ASSIGN_OR_RETURN(auto resolved,
                           preprocess::resolve(schema, run.options.embedding, run.options.tables,
                                               run.options.features, run.options.preprocess));
  RECMILL_RETURN_IF_ERROR(model::check_options(options.model, resolved.model));
  run.spec = model::with_model_tables(std::move(resolved.model), options.model);
  if (run.options.device != DeviceKind::cpu)
    for (TableSpec& table : run.spec.tables) table.sharding = Sharding::table;
  run.tuned_model = kernels::tune::model_digest(run.spec);
  run.graph = std::move(resolved.graph);
  return run;
}

int machine_cores() {
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

Result<ResolvedRun> resolve_run(const RunOptions& options, Files& files) {
  Pool pool(1);
  RECMILL_ASSIGN_OR_RETURN(const RunOptions whole, expand_workload(options));
  RECMILL_ASSIGN_OR_RETURN(
      const auto rows, reader::open_reader(whole.data, Subset::train,
                                           static_cast<uint64_t>(whole.train.seed), pool, files));
  return resolve_run(whole, rows->schema(), machine_cores());
}

Result<ResolvedRun> resolve_run(const RunOptions& options, const World& world, Files& files) {
  RECMILL_RETURN_IF_ERROR(check_training(options.train));
  RunOptions placed = options;
  const auto ranks = world.ranks(options.train.ranks);
  if (!ranks.ok()) return ranks.status().at("train.ranks");
  placed.train.ranks = *ranks;
  if (placed.train.threads == 0)
    placed.train.threads = std::max(1, machine_cores() / world.neighbours());
  return resolve_run(placed, files);
}

}  // namespace recmill::train
