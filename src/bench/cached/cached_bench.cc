// SPDX-License-Identifier: Apache-2.0
// `bench cached`: caches that know the next batches, on ranks over MPI, beside ranks without one;
// with --device another on a GPU (gpu_cached_bench.h).
#include "bench/alternation.h"
#include "bench/benches.h"
#include "bench/cached/cached_ways.h"
#include "bench/cached/gpu_cached_bench.h"
#include "bench/placed/placed_shape.h"
#include "bench/start_together.h"
#include "comm/measure_links.h"
#include "placement/planners.h"
#include "store/cached/ranks/sharded_cached_store.h"
#include "store/placed/placed_store.h"
#include "store/table_store.h"
#include "store/tables/table_rows.h"
#include "table/home/embedded_home.h"

namespace recmill::bench {
namespace {

constexpr const char* kName = "kaggle_zipf_1.2";

Status add_cached(CacheDesign design, CachedWays& of) {
  CachedWay& way = of.add(std::string(recmill::name_of(design)));
  const ModelSpec& model = of.stream().model;
  const store::HomeRanks homes(model, of.ranks().ranks());
  RECMILL_ASSIGN_OR_RETURN(
      auto tables, store::create_tables(model, 1, homes.shares(of.ranks().rank()), of.pool()));
  RECMILL_ASSIGN_OR_RETURN(
      way.store, store::ShardedCachedStore::create(
                     model, 1, table::make_embedded_home(std::move(tables), of.pool()), of.ranks(),
                     of.pool()));
  return of.begin_planned(way, design, CachedWays::kLookahead, CachedWays::kPrefetch);
}

Status add_without_cache(CachedWays& of) {
  CachedWay& way = of.add("no_cache");
  RECMILL_ASSIGN_OR_RETURN(way.store,
                           store::create_table_store(of.stream().model, 1, of.ranks(), of.pool()));
  of.begin(way, train::BatchWindow(/*ahead=*/0));
  return {};
}

Status add_torchrec_like(CachedWays& of) {
  CachedWay& way = of.add("torchrec_like_nodedup");
  const ModelSpec& model = of.stream().model;
  RECMILL_ASSIGN_OR_RETURN(const auto counts,
                           draw_counts(small_shape("kaggle", CachedWays::kDim), CachedWays::kZipf,
                                       kCountedSeed, kCounted, of.pool()));
  RECMILL_ASSIGN_OR_RETURN(const auto links, measure_links(of.ranks()));
  const auto problem = small_problem(model, counts, of.ranks().ranks(), links, /*training=*/true,
                                     /*dedup=*/false);
  RECMILL_ASSIGN_OR_RETURN(
      auto proposal,
      plan_placement(problem, placement::PlannerKind::torchrec_like, placement::PlannerOptions()));
  RECMILL_ASSIGN_OR_RETURN(
      auto placed, table::PlacedTables::create(proposal.plan, model.tables, of.ranks().ranks()));
  store::ShardedOptions options;
  options.dedup_fetch = false;
  RECMILL_ASSIGN_OR_RETURN(way.store, store::PlacedStore::create(model, 1, of.ranks(), of.pool(),
                                                                 std::move(placed), options));
  of.begin(way, train::BatchWindow(/*ahead=*/0));
  return {};
}

Status add_all(CachedWays& of) {
  for (const CacheDesign design :
       {CacheDesign::forward, CacheDesign::lrpp, CacheDesign::partitioned, CacheDesign::replicated})
    RECMILL_RETURN_IF_ERROR(add_cached(design, of));
  RECMILL_RETURN_IF_ERROR(add_without_cache(of));
  RECMILL_RETURN_IF_ERROR(add_torchrec_like(of));
  return of.run();
}

void report(const std::deque<CachedWay>& ways, double load, const BenchSink& sink) {
  const CachedWay& forward = ways[0];
  for (const CachedWay& way : ways) {
    BenchLine line;
    line.bench = "cached";
    line.name = kName;
    line.metric = "time_per_batch_" + way.label;
    line.value = 1e3 * median(way.seconds);
    line.unit = "ms";
    line.foreign_load = load;
    sink(line);
    if (&way != &forward) {
      line.rival = way.label;
      line.metric = "time_per_batch";
      line.value = 1e3 * median(forward.seconds);
      line.ratio = ratio_of({forward.seconds, way.seconds, load});
      sink(line);
    }
    if (way.moved == 0) continue;
    line.metric = "rows_moved_per_batch_" + way.label;
    line.value = way.moved;
    line.unit = "rows";
    line.rival = "";
    line.ratio = {};
    sink(line);
  }
}

}  // namespace

Status run_cached_bench(const BenchOptions& options, const BenchSink& sink) {
  if (options.device != DeviceKind::cpu) return run_gpu_cached_bench(options, sink);
  RECMILL_ASSIGN_OR_RETURN(const auto all, ranks_of_bench("cached", *options.world));
  if (all == nullptr || !options.wants(kName)) return {};  // more processes than are needed
  RECMILL_ASSIGN_OR_RETURN(const auto of, CachedWays::make(options, *all));
  const Status status = add_all(*of);
  // Data stages of ranks wait for each other.
  if (!status.ok()) all->abort(status);
  if (status.ok() && all->rank() == 0) report(of->ways(), of->foreign_load(), sink);
  return status;
}

}  // namespace recmill::bench
