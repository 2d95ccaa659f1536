// SPDX-License-Identifier: Apache-2.0
#include "run/placement/placement_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/paths.h"
#include "batch/feature_layout.h"
#include "run/checkpoint/row_digest.h"
#include "run/historical_batches.h"
#include "run/placement/sampled_lookups.h"
#include "run/rank.h"
#include "schema/cluster_file.h"
#include "stats/access_counter.h"
#include "stats/access_counts_file.h"
#include "table/embedding_table.h"

namespace recmill::train {
namespace {

/// Of devices that nobody has measured: 10 Gbit/s between them, 10 GB/s of rows looked up.
constexpr double kAssumedByteSeconds = 8e-10, kAssumedLookupSeconds = 1e-10;
constexpr int64_t kBatchSamples = 4096;

Status check_file(const char* key, const std::string& path, Files& files) {
  if (files.exists(path)) return {};
  return Status::BadRequest(fmt::format("{}: there is no file {}", key, whole_path(path)));
}

Result<AccessCounts> count_first_samples(const ResolvedRun& run, Files& files) {
  const auto pool = make_pool(run.threads);
  const auto seed = static_cast<uint64_t>(run.options.train.seed);
  RECMILL_ASSIGN_OR_RETURN(auto batches, HistoricalBatches::open(run, seed, *pool, files));
  RECMILL_ASSIGN_OR_RETURN(auto counter, stats::AccessCounter::create(run.spec, row_digest(run)));
  SparseBatch batch;
  const int64_t samples = std::min(run.options.placement.count_samples, batches.rows());
  for (int64_t left = samples; left > 0; left -= kBatchSamples) {
    RECMILL_RETURN_IF_ERROR(batches.next(std::min(left, kBatchSamples), batch));
    counter.add(batch, *pool);
  }
  return counter.finish(*pool);
}

Result<AccessCounts> count_sample(const ResolvedRun& run, Files& files) {
  const auto pool = make_pool(run.threads);
  SampledLookups lookups(run, *pool);
  RECMILL_RETURN_IF_ERROR(lookups.open(run.options.placement.sample, "placement.sample", files));
  RECMILL_ASSIGN_OR_RETURN(auto counter, stats::AccessCounter::create(run.spec, row_digest(run)));
  Progress progress(Progress::Style::silent, "counting", "rows", lookups.sample().drawn_rows);
  RECMILL_RETURN_IF_ERROR(lookups.visit(
      SampledLookups::Part::all, 0, 1, progress,
      [&](const LookupSample::Block&, const SparseBatch& batch) { counter.add(batch, *pool); }));
  return counter.finish(*pool);
}

Result<ClusterSpec> cluster_of(const ResolvedRun& run, int64_t device_memory, Files& files) {
  const PlacementOptions& options = run.options.placement;
  if (options.cluster.empty()) {
    ClusterSpec cluster = placement::equal_devices(run.ranks, device_memory, 0);
    for (int to = 0; to < run.ranks; ++to)
      for (int from = 0; from < run.ranks; ++from)
        cluster.links[static_cast<size_t>(to) * run.ranks + from].byte_seconds =
            to == from ? kAssumedLookupSeconds : kAssumedByteSeconds;
    return cluster;
  }
  RECMILL_RETURN_IF_ERROR(check_file("placement.cluster", options.cluster, files));
  auto cluster = read_cluster(files, options.cluster);
  if (!cluster.ok()) return cluster.status().at("placement.cluster");
  if (cluster->size() != run.ranks)
    return Status::BadRequest(
        fmt::format("placement.cluster: {} has {} devices; there are {} ranks", options.cluster,
                    cluster->size(), run.ranks));
  return cluster;
}

}  // namespace

Result<AccessCounts> placement_counts(const ResolvedRun& run, Files& files) {
  const PlacementOptions& options = run.options.placement;
  if (options.counts.empty())
    return options.sample > 0 ? count_sample(run, files) : count_first_samples(run, files);
  RECMILL_RETURN_IF_ERROR(check_file("placement.counts", options.counts, files));
  ThreadPool pool(run.threads);
  auto counts = stats::read_counts(options.counts, row_digest(run), files, pool);
  if (!counts.ok()) return counts.status().at("placement.counts");
  return counts;
}

AccessCounts blank_counts(const ResolvedRun& run) {
  AccessCounts counts;
  for (const TableSpec& spec : run.spec.tables) {
    TableCounts table;
    table.table = spec.name;
    table.rows = table.range_rows = spec.rows;
    table.range_lookups = {0};
    table.tail_rows_by_count = {spec.rows};
    counts.tables.push_back(std::move(table));
  }
  return counts;
}

Result<placement::Problem> placement_problem(const ResolvedRun& run, AccessCounts counts,
                                             int64_t device_memory, Files& files) {
  placement::Problem problem;
  for (const TableSpec& spec : run.spec.tables) {
    const int64_t bytes =
        table::EmbeddingTable::bytes(spec, table::RowShare::whole(spec.rows, 0, 1, 0));
    problem.tables.push_back({spec, (bytes + spec.rows - 1) / spec.rows});
  }
  for (const FeatureSpec& feature : run.spec.features)
    if (!is_pooled(feature.pooling)) problem.tables[feature.table].all_pooled = false;
  problem.counts = std::move(counts);
  problem.hot_set = run.hot_set;
  const PlacementOptions& options = run.options.placement;
  if (options.device_memory_mib > 0) device_memory = options.device_memory_mib << 20;
  RECMILL_ASSIGN_OR_RETURN(problem.cluster, cluster_of(run, device_memory, files));
  problem.samples = (run.options.train.batch_size + run.ranks - 1) / run.ranks;
  problem.training = !options.inference;
  problem.dedup_fetch = options.dedup_fetch;
  problem.deterministic = run.options.train.deterministic;
  problem.reduce = options.reduce;
  RECMILL_RETURN_IF_ERROR(placement::check_problem(problem));
  return problem;
}

std::vector<std::string> assumptions(const ResolvedRun& run, const placement::Problem& problem) {
  const PlacementOptions& options = run.options.placement;
  std::vector<std::string> lines;
  if (options.counts.empty())
    lines.push_back(
        fmt::format("rows were counted in {} {} samples; 'recmill stats --counts' counts "
                    "those of an epoch of training, and placement.counts takes its file",
                    options.sample > 0 ? "a sample of" : "the first", problem.counts.samples));
  if (options.cluster.empty())
    lines.push_back(
        "devices and links are taken for equal, 10 Gbit/s each; placement.cluster takes a file of "
        "measured ones");
  return lines;
}

placement::PlannerOptions planner_options(const ResolvedRun& run) {
  const PlacementOptions& from = run.options.placement;
  placement::PlannerOptions options;
  options.thresholds.access = from.access_threshold;
  options.thresholds.memory = from.memory_threshold;
  options.extra_memory = from.extra_memory;
  options.balance = from.balance;
  return options;
}

}  // namespace recmill::train
