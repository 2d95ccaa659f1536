// SPDX-License-Identifier: Apache-2.0
#include "run/lookahead/run_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/json/json.h"
#include "run/chosen_kernels.h"
#include "step/data/cache_step_planner.h"
#include "store/cached/cached_store.h"
#include "store/tables/table_rows.h"
#include "table/home/embedded_home.h"

namespace recmill::train {

bool has_cache(const ResolvedRun& run) {
  return run.options.embedding.store == StoreKind::cached;
}

Result<std::unique_ptr<store::EmbeddingStore>> make_cached_store(const ResolvedRun& run,
                                                                 ThreadPool& pool, Files& files) {
  const auto seed = static_cast<uint64_t>(run.options.train.seed);
  RECMILL_ASSIGN_OR_RETURN(auto kernels, choose_kernels(run, files));
  RECMILL_ASSIGN_OR_RETURN(auto tables, store::create_tables(run.spec, seed, 0, 1, pool));
  return std::unique_ptr<store::EmbeddingStore>(std::make_unique<store::CachedStore>(
      run.spec, seed, table::make_embedded_home(std::move(tables), pool), pool,
      std::move(kernels)));
}

std::unique_ptr<StepPlanner> make_step_planner(const ResolvedRun& run, int64_t free,
                                               ThreadPool& pool) {
  if (!has_cache(run)) return nullptr;
  const LookaheadOptions& of = run.options.lookahead;
  return std::make_unique<CacheStepPlanner>(
      run.spec, store::CachedStore::slot_bytes(run.spec, SlotTables(run.spec)),
      lookahead::CacheOptions{of.batches, of.prefetch, of.cache, free}, pool);
}

void cache_need(const ResolvedRun& run, MemoryLedger& ledger) {
  if (!has_cache(run)) return;
  if (const auto cache = run.options.lookahead.cache)
    ledger.items.push_back({"cached rows and optimizer state", 0, *cache});
}

Json to_json(const MovedRows& moved) {
  return {{"fetched", moved.fetched},
          {"written_back", moved.written_back},
          {"gradients", moved.gradients},
          {"weights", moved.weights},
          {"handed_over", moved.handed_over}};
}

std::string line_of(const CacheSize& size) {
  const int64_t slots = std::accumulate(size.slots.begin(), size.slots.end(), int64_t{0});
  const int64_t saved = size.batches == 0 ? 0 : (size.distinct - size.rows) / size.batches;
  return fmt::format(
      "cache: looks {} batches ahead, fetches {} ahead, {} slots; of {} rows a batch it saves {}. "
      "Rows are stored in the same memory: \"local\" is faster on this run",
      size.lookahead, size.prefetch, slots, size.batches == 0 ? 0 : size.distinct / size.batches,
      saved);
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
