// SPDX-License-Identifier: Apache-2.0
#include "run/resolved_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "hotset/hot_schedule.h"
#include "kernels/tune/record.h"
#include "reader/open_reader.h"
#include "remote/stream.h"
#include "run/options/check_size.h"
#include "run/options/expand_workload.h"
#include "schema/option_ranges.h"
#include "step/learning_rate.h"

namespace recmill::train {
namespace {

Status check_training(const TrainOptions& train) {
  const auto refuse = [](const std::string& key, const std::string& what) {
    return Status::BadRequest("train." + key + ": " + what);
  };
  if (train.slices != 0 && !std::has_single_bit(static_cast<uint64_t>(train.slices))) {
    return refuse("slices", "must be a power of two, is " + std::to_string(train.slices));
  }
  if (train.negative_keep < 1.0 && decays_to_the_end(train)) {
    return refuse(
        "decay.iterations",
        "must be given with train.negative_keep: where training ends is not known before");
  }
  return {};
}

/// Why the run has one rank; empty: it may have several.
std::string one_rank_of(const RunOptions& options) {
  const StoreKind store = options.embedding.store;
  const bool on_gpu = options.device != DeviceKind::cpu;
  if (store == StoreKind::cached && on_gpu)
    return fmt::format("embedding.store = \"cached\" on device = \"{}\"", name_of(options.device));
  return store == StoreKind::plain ? fmt::format("embedding.store = \"{}\"", name_of(store)) : "";
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
          .slices = slices,
          .rank = rank,
          .ranks = ranks,
          .dictionaries_grow = options.hotset.order == BatchOrder::mixed};
}

// What stores of GPUs do not have yet is refused, not left out.
Status check_device(const RunOptions& options) {
  if (options.gpu.preprocess && options.device == DeviceKind::cpu)
    return Status::BadRequest("gpu.preprocess: device = \"cpu\" has no GPU to preprocess on");
  const bool graphs = options.gpu.graphs == GpuGraphs::on;
  if (graphs && (options.device == DeviceKind::cpu || options.train.deterministic))
    return Status::BadRequest(
        "gpu.graphs: \"on\" needs a GPU as device and train.deterministic = false");
  if (graphs && options.gpu.synchronous)
    return Status::BadRequest("gpu.graphs: gpu.synchronous ends each kernel before the next");
  if (options.device == DeviceKind::cpu) return {};
  const std::string device = "device = \"" + std::string(name_of(options.device)) + "\"";
  const Transport other =
      options.device == DeviceKind::cuda ? Transport::nccl_emulated : Transport::nccl;
  if (options.train.transport == other)
    return Status::BadRequest("train.transport: \"" + std::string(name_of(other)) +
                              "\" is between other GPUs than those of " + device);
  const StoreKind store = options.embedding.store;
  if (store != StoreKind::local && store != StoreKind::cached)
    return Status::BadRequest(fmt::format(
        "embedding.store: \"{}\" is not supported on {}; use \"local\"", name_of(store), device));
  if (!options.kernels.templates.empty())
    return Status::BadRequest("kernels.templates: templates of your own run on device = \"cpu\"");
  const auto check_whole = [&](const std::string& section, std::optional<Sharding> sharding) {
    if (sharding.value_or(Sharding::table) == Sharding::table) return Status();
    return Status::BadRequest(
        fmt::format("{}.sharding: \"{}\" is not supported on {}; use \"table\"", section,
                    name_of(*sharding), device));
  };
  RECMILL_RETURN_IF_ERROR(check_whole("embedding", options.embedding.sharding));
  for (size_t t = 0; t < options.tables.size(); ++t)
    RECMILL_RETURN_IF_ERROR(check_whole(fmt::format("tables[{}]", t), options.tables[t].sharding));
  return {};
}

Status check_disk(const LookaheadOptions& of) {
  const bool is_on_disk = of.home == CacheHome::disk;
  if (is_on_disk && of.disk_path.empty())
    return Status::BadRequest("lookahead.disk_path: home = \"disk\" needs a folder for the rows");
  if (!is_on_disk && !of.disk_path.empty())
    return Status::BadRequest("lookahead.disk_path: is used with lookahead.home = \"disk\"");
  return {};
}

// Where servers are and how they are reached.
Status check_servers(const LookaheadOptions& of) {
  const bool is_remote = of.home == CacheHome::remote;
  if (is_remote && of.servers.empty())
    return Status::BadRequest(
        "lookahead.servers: home = \"remote\" needs the addresses of embedding servers, which "
        "`recmill server embedding` prints");
  if (!is_remote && !of.servers.empty())
    return Status::BadRequest("lookahead.servers: are used with lookahead.home = \"remote\"");
  for (const std::string& server : of.servers) {
    const size_t colon = server.rfind(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == server.size())
      return Status::BadRequest("lookahead.servers: '" + server + "' is not HOST:PORT");
    if (!remote::is_loopback(server) && !of.insecure &&
        (of.token_file.empty() || of.tls_ca.empty()))
      return Status::BadRequest("lookahead.servers: " + server +
                                " is beyond this machine: set lookahead.token_file and "
                                "lookahead.tls_ca, or lookahead.insecure = true");
    if (std::ranges::count(of.servers, server) > 1)
      return Status::BadRequest("lookahead.servers: " + server + " is named twice");
  }
  return {};
}

// What the cached store does not do is refused, not left out.
Status check_cache(const RunOptions& options) {
  if (options.embedding.store != StoreKind::cached) {
    if (options.lookahead.home == CacheHome::embedded) return {};
    return Status::BadRequest(
        fmt::format("lookahead.home: \"{}\" needs embedding.store = \"cached\"",
                    name_of(options.lookahead.home)));
  }
  RECMILL_RETURN_IF_ERROR(check_servers(options.lookahead));
  RECMILL_RETURN_IF_ERROR(check_disk(options.lookahead));
  const auto refuse = [](const std::string& key, const std::string& what) {
    return Status::BadRequest(
        fmt::format("{}: {} is not supported with embedding.store = \"cached\"", key, what));
  };
  if (options.placement.replan_every > 0)
    return refuse("placement.replan_every", "moving rows between ranks");
  if (!options.placement.plan.empty()) return refuse("placement.plan", "a placement plan");
  if (options.gpu.rows != GpuRowsIn::device)
    return refuse("gpu.rows", fmt::format("\"{}\"", name_of(options.gpu.rows)));
  const auto check_hash = [&](const std::string& key, std::optional<Sharding> sharding) {
    if (sharding.value_or(Sharding::hash) == Sharding::hash) return Status();
    return refuse(key, fmt::format("\"{}\"", name_of(*sharding)));
  };
  RECMILL_RETURN_IF_ERROR(check_hash("embedding.sharding", options.embedding.sharding));
  for (size_t t = 0; t < options.tables.size(); ++t)
    RECMILL_RETURN_IF_ERROR(
        check_hash(fmt::format("tables[{}].sharding", t), options.tables[t].sharding));
  return {};
}

// What asks for hot and cold batches, and what they ask for.
Status check_order(const RunOptions& options) {
  const HotsetOptions& of = options.hotset;
  const auto refuse = [](const std::string& key, const std::string& what) {
    return Status::BadRequest("hotset." + key + ": " + what);
  };
  if (of.order == BatchOrder::mixed) {
    const std::pair<const char*, bool> set[] = {{"folder", !of.folder.empty()},
                                                {"replay", !of.replay.empty()},
                                                {"rate", of.rate > 0},
                                                {"first", of.first != FirstKind::cold}};
    for (const auto& [key, is_set] : set)
      if (is_set) return refuse(key, "is used with hotset.order = \"hot_cold\"");
    return {};
  }
  if (of.folder.empty())
    return refuse("folder",
                  "order = \"hot_cold\" needs a folder that 'recmill convert CONFIG --hotcold "
                  "FOLDER' writes");
  if (options.train.negative_keep < 1.0)
    return Status::BadRequest(
        fmt::format("train.negative_keep: is {}, and hotset.order = \"hot_cold\" trains on every "
                    "input",
                    options.train.negative_keep));
  if (of.rate > 0 && !hotset::Percent::of(of.rate))
    return refuse("rate", fmt::format("has at most six decimals, is {}", of.rate));
  if (of.rate > 0 && !of.replay.empty())
    return refuse("rate", "is not used with hotset.replay, whose schedules have their own");
  return {};
}

int ResolvedRun::most_ranks() const {
  return one_rank_of(options).empty() ? slices : 1;
}

int64_t ResolvedRun::samples_in_all(int64_t rows) const {
  const int64_t by_epochs = rows * options.train.epochs;
  const int64_t iterations = options.train.iterations, batch = options.train.batch_size;
  const bool ends_before = iterations > 0 && iterations <= by_epochs / batch;
  return ends_before ? iterations * batch : by_epochs;
}

Result<ResolvedRun> resolve_run(const RunOptions& options, const DataSchema& schema, int cores) {
  RECMILL_RETURN_IF_ERROR(check_ranges(options));
  RECMILL_RETURN_IF_ERROR(check_training(options.train));
  RECMILL_RETURN_IF_ERROR(check_device(options));
  RECMILL_RETURN_IF_ERROR(check_cache(options));
  RECMILL_RETURN_IF_ERROR(check_order(options));
  ResolvedRun run;
  RECMILL_ASSIGN_OR_RETURN(run.options, expand_workload(options));
  run.schema = schema;
  const TrainOptions& train = run.options.train;
  run.slices = train.slices > 0 ? static_cast<int>(train.slices)
                                : SliceCut::default_slices(train.batch_size);
  run.ranks = static_cast<int>(std::max<int64_t>(1, train.ranks));
  run.threads = train.threads > 0 ? static_cast<int>(train.threads) : cores;
  if (run.ranks > run.slices) {
    return Status::BadRequest("train.ranks: " + std::to_string(run.ranks) +
                              " is more than train.slices, which is " + std::to_string(run.slices));
  }
  if (run.ranks > run.most_ranks()) {
    return Status::BadRequest(fmt::format("train.ranks: is {}; {} runs on one rank", run.ranks,
                                          one_rank_of(run.options)));
  }
  RECMILL_ASSIGN_OR_RETURN(auto resolved,
                           preprocess::resolve(schema, run.options.embedding, run.options.tables,
                                               run.options.features, run.options.preprocess));
  run.spec = resolved.model;
  RECMILL_RETURN_IF_ERROR(check_table_sizes(run, options));
  RECMILL_RETURN_IF_ERROR(model::check_options(options.model, resolved.model));
  run.spec = model::with_model_tables(std::move(resolved.model), options.model);
  if (run.options.device != DeviceKind::cpu)
    for (TableSpec& table : run.spec.tables) table.sharding = Sharding::table;
  run.tuned_model = kernels::tune::model_digest(run.spec);
  run.graph = std::move(resolved.graph);
  RECMILL_RETURN_IF_ERROR(check_batch_sizes(run, options));
  return run;
}

Status check_judging(const ResolvedRun& run) {
  const TrainOptions& train = run.options.train;
  const HotsetOptions& hotset = run.options.hotset;
  if (!reader::names_evaluation_rows(run.options.data)) {
    if (hotset.order == BatchOrder::hot_cold && hotset.rate == 0 && hotset.replay.empty())
      return Status::BadRequest(
          "hotset.rate: is 0, and there are no evaluation rows whose loss it could follow; fix it "
          "above 0");
    if (train.early_stop.patience > 0)
      return Status::BadRequest(fmt::format(
          "train.early_stop.patience: is {}, and there are no evaluation rows to stop by",
          train.early_stop.patience));
    if (train.checkpoint.keep_best)
      return Status::BadRequest(
          "train.checkpoint.keep_best: is true, and there are no evaluation rows to judge by");
  }
  if (train.early_stop.metric != StopMetric::gauc || run.schema.has_group) return {};
  return Status::BadRequest(
      "train.early_stop.metric: \"gauc\" needs a group for each row, and the data has no column of "
      "role group");
}

int machine_cores() {
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

Result<ResolvedRun> resolve_run(const RunOptions& options, Files& files) {
  RECMILL_RETURN_IF_ERROR(check_ranges(options));
  ThreadPool pool(1);
  RECMILL_ASSIGN_OR_RETURN(const RunOptions whole, expand_workload(options));
  RECMILL_ASSIGN_OR_RETURN(
      const auto rows, reader::open_reader(whole.data, Subset::train,
                                           static_cast<uint64_t>(whole.train.seed), pool, files));
  return resolve_run(options, rows->schema(), machine_cores());
}

Result<ResolvedRun> resolve_run(const RunOptions& options, const World& world, Files& files) {
  RECMILL_RETURN_IF_ERROR(check_ranges(options));
  RunOptions placed = options;
  const auto ranks = world.ranks(options.train.ranks);
  if (!ranks.ok()) return ranks.status().at("train.ranks");
  placed.train.ranks = *ranks;
  if (placed.train.threads == 0)
    placed.train.threads = std::max(1, machine_cores() / world.neighbours());
  return resolve_run(placed, files);
}

}  // namespace recmill::train
