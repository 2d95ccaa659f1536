// SPDX-License-Identifier: Apache-2.0
// Cached stores over homes in this process, with the plans of whole scenarios.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "lookahead/batch_rows.h"
#include "lookahead/cache_planner.h"
#include "store/cached/cached_store.h"
#include "store/cached/host_slot_store.h"
#include "store/tables/table_rows.h"
#include "store/testing/scenario.h"
#include "table/home/embedded_home.h"
#include "table/home/testing/late_home.h"

namespace recmill::store::testing {

/// The distinct rows of a rank's batches of a step, ascending.
class RowsOfSteps {
 public:
  explicit RowsOfSteps(const ModelSpec& model) : finder_(model) {}
  std::vector<int64_t> of(std::span<const SparseBatch> batches) {
    std::set<int64_t> rows;
    for (const SparseBatch& batch : batches) {
      std::vector<int64_t> some;
      finder_.find(batch, 0, batch.samples, pool_, some);
      rows.insert(some.begin(), some.end());
    }
    return {rows.begin(), rows.end()};
  }

 private:
  lookahead::BatchRows finder_;
  ThreadPool pool_{1};
};

/// Plans all steps of a scenario.
inline Status look_ahead(const lookahead::CacheOptions& options, const ModelSpec& model,
                         std::span<const StepBatches> steps, std::span<StepPlan> plans) {
  const SlotTables tables(model);
  lookahead::CachePlanner planner(tables, HostSlotStore::slot_bytes(model, tables), options);
  RowsOfSteps rows(model);
  for (const StepBatches& batches : steps) planner.see(rows.of(batches[0]), 0);
  planner.end();
  for (StepPlan& plan : plans) {
    RECMILL_ASSIGN_OR_RETURN(plan.lookahead, planner.next());
    plan.cache = std::make_shared<const CacheSize>(planner.size());
  }
  return {};
}

inline constexpr int64_t kPlenty = int64_t{1} << 30;  // bytes

/// `late`: it answers as late as it may, and in any order.
inline Result<std::shared_ptr<table::RowHome>> make_home(const ModelSpec& model, uint64_t seed,
                                                         bool late, ThreadPool& pool) {
  RECMILL_ASSIGN_OR_RETURN(auto tables, create_tables(model, seed, 0, 1, pool));
  std::shared_ptr<table::RowHome> home = table::make_embedded_home(std::move(tables), pool);
  if (!late) return home;
  struct Late {
    Late(std::shared_ptr<table::RowHome> of, uint64_t seed_of)
        : inner(std::move(of)), outer(*inner, seed_of) {}
    std::shared_ptr<table::RowHome> inner;
    table::testing::LateHome outer;
  };
  auto of = std::make_shared<Late>(std::move(home), seed);
  return std::shared_ptr<table::RowHome>{of, &of->outer};
}

/// `kLate`: as make_home().
template <bool kLate>
Result<std::unique_ptr<EmbeddingStore>> make_cached(const ModelSpec& model, uint64_t seed,
                                                    ThreadPool& pool) {
  RECMILL_ASSIGN_OR_RETURN(auto home, make_home(model, seed, kLate, pool));
  return std::unique_ptr<EmbeddingStore>(std::make_unique<CachedStore>(
      model, seed, std::move(home), pool, HostSlotStore::maker(seed, pool, {})));
}

/// A fixture of store_contract.h.
template <int64_t kLookahead, int64_t kPrefetch, bool kLate>
struct CachedFixture {
  static constexpr bool kManyRanks = false;
  static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
                                                      Communicator&, ThreadPool& pool) {
    return make_cached<kLate>(model, seed, pool);
  }
  static Status look_ahead(const ModelSpec& model, int, std::span<const StepBatches> steps,
                           std::span<StepPlan> plans) {
    return testing::look_ahead({.lookahead = kLookahead, .prefetch = kPrefetch, .cache = kPlenty},
                               model, steps, plans);
  }
};

}  // namespace recmill::store::testing
