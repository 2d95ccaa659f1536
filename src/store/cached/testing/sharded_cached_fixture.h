// SPDX-License-Identifier: Apache-2.0
// Cached stores of several ranks over homes in this process, with the plans of whole scenarios.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "lookahead/cache_decider.h"
#include "lookahead/shared_oracle.h"
#include "store/cached/ranks/sharded_cached_store.h"
#include "store/cached/testing/cached_fixture.h"

namespace recmill::store::testing {

/// What the deciders of all ranks say to one of them, of all steps of a scenario.
inline Status look_ahead_of_rank(const CacheSize& size, CacheDesign design, const ModelSpec& model,
                                 int rank, std::span<const StepBatches> steps,
                                 std::span<StepPlan> plans) {
  const int ranks = steps.empty() ? 1 : static_cast<int>(steps[0].size());
  const HomeRanks homes(model, ranks);
  std::vector<lookahead::CacheDecider> deciders;
  for (int decider = 0; decider < ranks; ++decider)
    deciders.emplace_back(homes.tables(), decider, ranks, design);
  RowsOfSteps rows(model);
  for (const StepBatches& step : steps) {
    std::vector<std::vector<int64_t>> of_ranks;
    for (const auto& batches : step) of_ranks.push_back(rows.of(batches));
    auto parts = lookahead::split_uses(
        lookahead::merge_uses(of_ranks), [&](int64_t row) { return homes.of(row); }, ranks);
    for (int decider = 0; decider < ranks; ++decider)
      deciders[decider].see(std::move(parts[decider]));
  }
  for (auto& decider : deciders) {
    decider.choose(size);
    decider.end();
  }
  const auto chosen = std::make_shared<const CacheSize>(size);
  for (StepPlan& plan : plans) {
    std::vector<RankStep> parts;
    for (auto& decider : deciders) {
      RECMILL_ASSIGN_OR_RETURN(auto of_ranks, decider.next());
      parts.push_back(std::move(of_ranks[rank]));
    }
    plan.of_rank = std::make_shared<const RankStep>(lookahead::merged(parts));
    plan.cache = chosen;
  }
  return {};
}

/// `slots` of each slot table at each rank: rounded up to a multiple of ranks.
inline CacheSize cache_of_ranks(const ModelSpec& model, CacheDesign design, int ranks,
                                int64_t lookahead, int64_t prefetch, int64_t slots) {
  const auto tables = static_cast<size_t>(SlotTables(model).count());
  const int64_t rounded = (slots + ranks - 1) / ranks * ranks;
  CacheSize size{.lookahead = lookahead, .prefetch = std::min(prefetch, lookahead)};
  // One rank has no copies.
  const bool all_copied = design == CacheDesign::replicated && ranks > 1;
  size.slots.assign(tables, all_copied ? 0 : rounded);
  const bool copies = all_copied || (design == CacheDesign::lrpp && ranks > 1);
  size.copied_slots.assign(tables, copies ? rounded : 0);
  return size;
}

inline Result<std::unique_ptr<EmbeddingStore>> make_sharded_cached(const ModelSpec& model,
                                                                   uint64_t seed,
                                                                   Communicator& communicator,
                                                                   ThreadPool& pool,
                                                                   ShardedOptions options = {}) {
  RECMILL_ASSIGN_OR_RETURN(
      auto tables, create_tables(model, seed, communicator.rank(), communicator.ranks(), pool));
  RECMILL_ASSIGN_OR_RETURN(
      auto store,
      ShardedCachedStore::create(model, seed, table::make_embedded_home(std::move(tables), pool),
                                 communicator, pool, options));
  return std::unique_ptr<EmbeddingStore>(std::move(store));
}

/// A fixture of store_contract.h.
template <CacheDesign kDesign, int64_t kLookahead, int64_t kPrefetch, bool kShareRows>
struct ShardedCachedFixture {
  static constexpr bool kManyRanks = true;
  static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
                                                      Communicator& communicator,
                                                      ThreadPool& pool) {
    ShardedOptions options;
    options.share_rows = kShareRows;
    return make_sharded_cached(model, seed, communicator, pool, options);
  }
  static Status look_ahead(const ModelSpec& model, int rank, std::span<const StepBatches> steps,
                           std::span<StepPlan> plans) {
    const int ranks = steps.empty() ? 1 : static_cast<int>(steps[0].size());
    return look_ahead_of_rank(
        cache_of_ranks(model, kDesign, ranks, kLookahead, kPrefetch, 300 * ranks), kDesign, model,
        rank, steps, plans);
  }
};

}  // namespace recmill::store::testing
