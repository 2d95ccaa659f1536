// SPDX-License-Identifier: Apache-2.0
#include "run/lookahead/run_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "base/json/json.h"
#include "base/saturating.h"
#include "disk/disk_versions.h"
#include "run/chosen_kernels.h"
#include "run/lookahead/row_home.h"
#include "run/sample_lookups.h"
#include "step/data/cache_step_planner.h"
#include "step/data/sharded_step_planner.h"
#include "store/cached/cached_store.h"
#include "store/cached/host_slot_store.h"
#include "store/cached/ranks/sharded_cached_store.h"
#include "store/gpu/gpu_slot_store.h"
#include "table/row_record.h"

namespace recmill::train {

bool has_cache(const ResolvedRun& run) {
  return run.options.embedding.store == StoreKind::cached;
}

bool has_servers(const ResolvedRun& run) {
  return has_cache(run) && run.options.lookahead.home == CacheHome::remote;
}

bool has_rows_elsewhere(const ResolvedRun& run) {
  return has_cache(run) && run.options.lookahead.home != CacheHome::embedded;
}

Result<std::unique_ptr<store::EmbeddingStore>> make_cached_store(const ResolvedRun& run,
                                                                 Communicator& communicator,
                                                                 ThreadPool& pool, Files& files,
                                                                 HomeStart& start) {
  const auto seed = static_cast<uint64_t>(run.options.train.seed);
  RECMILL_ASSIGN_OR_RETURN(auto kernels, choose_kernels(run, files));
  RECMILL_ASSIGN_OR_RETURN(auto home, make_row_home(run, communicator, pool, files, start));
  if (communicator.ranks() > 1) {
    RECMILL_ASSIGN_OR_RETURN(
        auto store, store::ShardedCachedStore::create(run.spec, seed, home, communicator, pool, {},
                                                      std::move(kernels)));
    return std::unique_ptr<store::EmbeddingStore>(std::move(store));
  }
  return std::unique_ptr<store::EmbeddingStore>(std::make_unique<store::CachedStore>(
      run.spec, seed, home, pool, store::HostSlotStore::maker(seed, pool, std::move(kernels))));
}

namespace {

bool has_gpu(const ResolvedRun& run) {
  return run.options.device != DeviceKind::cpu;
}

/// Of `ranks` ranks, with `free` bytes for all of them.
lookahead::CacheOptions cache_options(const ResolvedRun& run, int64_t free, int ranks) {
  const LookaheadOptions& of = run.options.lookahead;
  // A commit has changed rows twice more, on their way.
  const int64_t parts = has_rows_elsewhere(run) ? 3 : 1;
  return {of.batches,
          of.prefetch,
          of.cache,
          free / ranks / parts,
          ranks,
          of.design,
          /*slots_apart=*/has_gpu(run)};
}

/// Records of a rank's rows on their way: of one rank those of P + 1 steps that come, and of one
/// that leaves; of several what a round sends and receives, and copies of what it sends. At most:
/// `lookups` [tables] of a step, none of them twice in the same row.
int64_t moved_bytes(const ResolvedRun& run, std::span<const int64_t> lookups) {
  int64_t bytes = 0;
  for (size_t t = 0; t < lookups.size(); ++t) {
    const TableSpec& table = run.spec.tables[t];
    bytes = saturating_sum({bytes, saturating_product({std::min(lookups[t], table.rows),
                                                       table::RowRecord(table).bytes()})});
  }
  const lookahead::CacheOptions of = cache_options(run, 0, run.ranks);
  if (has_servers(run)) bytes = saturating_product({bytes, 2});  // as messages, too
  constexpr int64_t kOfRound = 3;
  const int64_t steps = std::min(of.prefetch, CacheStepPlanner::ahead(of)) + 2;
  return saturating_product({bytes, run.ranks == 1 ? steps : kOfRound});
}

/// [slot tables]
std::vector<int64_t> slot_bytes_of(const ResolvedRun& run, const SlotTables& tables) {
  return has_gpu(run) ? store::GpuSlotStore::slot_bytes(run.spec, tables)
                      : store::HostSlotStore::slot_bytes(run.spec, tables);
}

}  // namespace

std::unique_ptr<StepPlanner> make_step_planner(const ResolvedRun& run, int64_t free, int64_t on_gpu,
                                               Communicator* communicator, ThreadPool& pool) {
  auto slot_bytes = slot_bytes_of(run, SlotTables(run.spec));
  if (communicator != nullptr)
    return std::make_unique<ShardedStepPlanner>(run.spec, std::move(slot_bytes),
                                                cache_options(run, free, communicator->ranks()),
                                                pool, *communicator);
  lookahead::CacheOptions of = cache_options(run, free, 1);
  if (of.slots_apart) of.cache = on_gpu;
  return std::make_unique<CacheStepPlanner>(run.spec, std::move(slot_bytes), of, pool);
}

void cache_need(const ResolvedRun& run, int64_t free, MemoryLedger& ledger) {
  if (!has_cache(run)) return;
  const lookahead::CacheOptions of = cache_options(run, free, run.ranks);
  free /= run.ranks;
  const int64_t samples = (run.options.train.batch_size + run.ranks - 1) / run.ranks;
  const auto of_features = sample_lookups(run);
  std::vector<int64_t> lookups(run.spec.tables.size());
  for (size_t f = 0; f < of_features.size(); ++f)
    lookups[run.spec.features[f].table] +=
        std::llround(of_features[f] * static_cast<double>(samples));
  const double of_sample = std::accumulate(of_features.begin(), of_features.end(), 0.5);
  int64_t batches = saturating_product(
      {CacheStepPlanner::ahead(of),
       RankBatch::held_bytes(samples, run.spec.num_dense, static_cast<int64_t>(of_sample))});
  if (!of.lookahead) batches = std::min(batches, free);
  const SlotTables tables(run.spec);
  const auto slot_bytes = slot_bytes_of(run, tables);
  int64_t rows = 0;
  for (int k = 0; k < tables.count(); ++k)
    rows = saturating_sum({rows, saturating_product({tables.rows_of(k), slot_bytes[k]})});
  rows = std::min(rows, of.cache.value_or(std::max<int64_t>(free - batches, 0)));
  const int64_t known = CacheStepPlanner::most_bytes(run.spec, of, lookups);
  const int64_t moved = moved_bytes(run, lookups);
  for (int rank = 0; rank < run.ranks; ++rank) {
    ledger.items.push_back({"batches looked ahead", rank, batches, /*certain=*/false});
    ledger.items.push_back(
        {"rows on their way to slots and from there, at most", rank, moved, /*certain=*/false});
    ledger.items.push_back(
        {"what is known of their rows, at most", rank, known, /*certain=*/false});
    if (run.options.lookahead.home == CacheHome::disk)
      ledger.items.push_back({"database of the rows on a disk", rank,
                              run.options.lookahead.disk_memory, /*certain=*/true});
    if (run.options.lookahead.home == CacheHome::disk)
      ledger.items.push_back({"which rows are on the disk, and kept for images", rank,
                              disk::DiskVersions::need(run.spec.tables), /*certain=*/true});
    if (has_rows_elsewhere(run))
      ledger.items.push_back(
          {"changed rows of a commit on their way, at most", rank, 2 * rows, /*certain=*/false});
    if (!of.slots_apart)
      ledger.items.push_back({"cached rows and optimizer state", rank, rows, of.cache.has_value()});
  }
}

Json to_json(const MovedRows& moved) {
  return {{"fetched", moved.fetched},
          {"written_back", moved.written_back},
          {"gradients", moved.gradients},
          {"weights", moved.weights},
          {"handed_over", moved.handed_over}};
}

std::string line_of(const CacheSize& size, const ResolvedRun& run, bool ranks_apart) {
  int64_t slots = std::accumulate(size.slots.begin(), size.slots.end(), int64_t{0});
  slots = std::accumulate(size.copied_slots.begin(), size.copied_slots.end(), slots);
  int64_t rows = 0;
  for (const TableSpec& table : run.spec.tables) rows += table.rows;
  std::string advice;
  if (has_gpu(run)) {
    if (slots >= rows) advice = " All rows fit in the GPU's memory";
  } else if (!ranks_apart && !has_servers(run)) {
    advice = " Rows are stored in the memory of one machine";
  }
  if (!advice.empty()) advice += ": \"local\" is faster on this run";
  const int64_t saved = size.batches == 0 ? 0 : (size.distinct - size.rows) / size.batches;
  return fmt::format(
      "cache: looks {} batches ahead, fetches {} ahead, {} slots{}; of {} rows a batch it saves "
      "{}.{}",
      size.lookahead, size.prefetch, slots, run.ranks > 1 ? " at each rank" : "",
      size.batches == 0 ? 0 : size.distinct / size.batches, saved, advice);
}

// A first window of fewer batches than it has room for is the whole stream.
std::string line_of_shortage(const LookaheadOptions& asked, const CacheSize& size) {
  if (asked.batches.value_or(0) <= size.batches) return "";
  return fmt::format(
      "lookahead.batches: {} is more than the {} batches that there are, those of evaluations "
      "included",
      *asked.batches, size.batches);
}

}  // namespace recmill::train
