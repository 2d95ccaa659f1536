// SPDX-License-Identifier: Apache-2.0
// `bench cached`: caches that know the next batches, on ranks over MPI, beside ranks without one;
// with --device another on a GPU (gpu_cached_bench.h).
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>

#include "base/clock.h"
#include "bench/benches.h"
#include "bench/cached/cached_stream.h"
#include "bench/cached/gpu_cached_bench.h"
#include "bench/looked_up_rows.h"
#include "bench/placed/placed_shape.h"
#include "bench/start_together.h"
#include "comm/gather_values.h"
#include "comm/measure_links.h"
#include "placement/planners.h"
#include "step/data/data_stage.h"
#include "step/data/sharded_step_planner.h"
#include "store/cached/host_slot_store.h"
#include "store/cached/ranks/sharded_cached_store.h"
#include "store/placed/placed_store.h"
#include "store/table_store.h"
#include "store/tables/table_rows.h"
#include "table/home/embedded_home.h"

namespace recmill::bench {
namespace {

constexpr int64_t kLookahead = 60, kPrefetch = 4, kDim = 64;
constexpr int64_t kBatches = 4;               // of a repetition
constexpr int64_t kChecked = 2;               // batches before the first
constexpr int64_t kQueue = 4;                 // batches that are ready before they are needed
constexpr int64_t kCache = int64_t{1} << 27;  // bytes of slots at a rank
constexpr double kZipf = 1.2;
constexpr const char* kName = "kaggle_zipf_1.2";

/// One store and its data stage.
struct Way {
  std::string label;
  std::unique_ptr<Communicator> planning;
  std::unique_ptr<store::EmbeddingStore> store;
  std::unique_ptr<train::DataStage> stage;  // goes before what it uses
  int64_t trained = 0;                      // batches
  std::vector<double> seconds;              // a batch, by repetition
  double moved = 0;                         // rows of a cache in a batch, over all ranks
};

class CachedBench {
 public:
  CachedBench(const BenchOptions& options, Communicator& all)
      : options_(options),
        all_(all),
        pool_(std::max<int>(1, static_cast<int>(options.threads) / all.ranks())) {}

  Status run(const BenchSink& sink) {
    if (!options_.wants(kName)) return {};
    const FrozenShape shape = small_shape("kaggle", kDim);
    const int64_t batches = kChecked + (options_.pairs + 1) * kBatches + kLookahead + kPrefetch;
    stream_ =
        CachedStream::make(shape, kZipf, batches, kRankSamples, all_.rank(), all_.ranks(), pool_);
    RECMILL_ASSIGN_OR_RETURN(
        rows_, LookedUpRows::make(kRankSamples, std::ssize(stream_.model.features), kDim));
    std::deque<Way> ways;
    const Status status = run(shape, ways, sink);
    // Data stages of ranks wait for each other.
    if (!status.ok()) all_.abort(status);
    return status;
  }

 private:
  Status run(const FrozenShape& shape, std::deque<Way>& ways, const BenchSink& sink) {
    for (const CacheDesign design : {CacheDesign::forward, CacheDesign::lrpp,
                                     CacheDesign::partitioned, CacheDesign::replicated})
      RECMILL_RETURN_IF_ERROR(add_cached(design, ways));
    RECMILL_RETURN_IF_ERROR(add_without_cache(ways));
    RECMILL_RETURN_IF_ERROR(add_torchrec_like(shape, ways));
    RECMILL_RETURN_IF_ERROR(check_answers(ways));
    RECMILL_ASSIGN_OR_RETURN(StartTogether together, StartTogether::make(all_));
    RECMILL_RETURN_IF_ERROR(
        together.take_turns(ways.size(), options_.pairs,
                            [&](size_t way, bool counts) { return time(ways[way], counts); }));
    for (Way& way : ways) RECMILL_RETURN_IF_ERROR(count_moved(way));
    if (all_.rank() == 0) report(ways, together.foreign_load(), sink);
    return {};
  }

  void begin(Way& way, train::BatchWindow window) {
    way.stage = std::make_unique<train::DataStage>(std::make_unique<CachedStreamSource>(stream_),
                                                   std::move(window), *way.store, nullptr, kQueue);
  }

  Status add_cached(CacheDesign design, std::deque<Way>& ways) {
    Way& way = ways.emplace_back();
    way.label = recmill::name_of(design);
    RECMILL_ASSIGN_OR_RETURN(way.planning, all_.duplicate());
    const store::HomeRanks homes(stream_.model, all_.ranks());
    RECMILL_ASSIGN_OR_RETURN(
        auto tables, store::create_tables(stream_.model, 1, homes.shares(all_.rank()), pool_));
    RECMILL_ASSIGN_OR_RETURN(
        way.store,
        store::ShardedCachedStore::create(
            stream_.model, 1, table::make_embedded_home(std::move(tables), pool_), all_, pool_));
    const lookahead::CacheOptions options{kLookahead, kPrefetch,    kCache,
                                          kCache,     all_.ranks(), design};
    begin(way, train::BatchWindow(std::make_unique<train::ShardedStepPlanner>(
                   stream_.model,
                   store::HostSlotStore::slot_bytes(stream_.model, SlotTables(stream_.model)),
                   options, pool_, *way.planning)));
    return {};
  }

  Status add_without_cache(std::deque<Way>& ways) {
    Way& way = ways.emplace_back();
    way.label = "no_cache";
    RECMILL_ASSIGN_OR_RETURN(way.store, store::create_table_store(stream_.model, 1, all_, pool_));
    begin(way, train::BatchWindow(/*ahead=*/0));
    return {};
  }

  Status add_torchrec_like(const FrozenShape& shape, std::deque<Way>& ways) {
    Way& way = ways.emplace_back();
    way.label = "torchrec_like_nodedup";
    RECMILL_ASSIGN_OR_RETURN(const auto counts,
                             draw_counts(shape, kZipf, kCountedSeed, kCounted, pool_));
    RECMILL_ASSIGN_OR_RETURN(const auto links, measure_links(all_));
    const auto problem = small_problem(stream_.model, counts, all_.ranks(), links,
                                       /*training=*/true, /*dedup=*/false);
    RECMILL_ASSIGN_OR_RETURN(auto proposal,
                             plan_placement(problem, placement::PlannerKind::torchrec_like,
                                            placement::PlannerOptions()));
    RECMILL_ASSIGN_OR_RETURN(auto placed, table::PlacedTables::create(
                                              proposal.plan, stream_.model.tables, all_.ranks()));
    store::ShardedOptions options;
    options.dedup_fetch = false;
    RECMILL_ASSIGN_OR_RETURN(way.store, store::PlacedStore::create(stream_.model, 1, all_, pool_,
                                                                   std::move(placed), options));
    begin(way, train::BatchWindow(/*ahead=*/0));
    return {};
  }

  /// Rows looked up are the gradient as well.
  Status go(Way& way) {
    RECMILL_ASSIGN_OR_RETURN(auto batch, way.stage->next());
    if (batch == nullptr) return Status::Failed(way.label + ": the stream has ended");
    recmill::Stream stream(pool_);
    RECMILL_RETURN_IF_ERROR(way.store->lookup(*batch->prepared, rows_.output(), stream));
    const store::Update update{batch->prepared.get(), rows_.gradient()};
    RECMILL_RETURN_IF_ERROR(way.store->update({&update, 1}, {way.trained, 1.0}, stream));
    way.stage->recycle(std::move(batch));
    ++way.trained;
    return {};
  }

  /// What the last batch looked up is the same in every way.
  Status check_rows(const Way& way) {
    const auto last = static_cast<size_t>(way.trained);
    if (checksums_.size() <= last) checksums_.resize(last + 1);
    const uint32_t now = rows_.checksum();
    if (checksums_[last] == 0) checksums_[last] = now;
    if (checksums_[last] == now) return {};
    return Status::Failed(fmt::format("{}: batch {} looks up other rows", way.label, way.trained));
  }

  Status check_answers(std::deque<Way>& ways) {
    for (Way& way : ways) {
      for (int64_t b = 0; b < kChecked; ++b) {
        RECMILL_RETURN_IF_ERROR(go(way));
        RECMILL_RETURN_IF_ERROR(check_rows(way));
      }
    }
    return {};
  }

  Status time(Way& way, bool counts) {
    RECMILL_RETURN_IF_ERROR(all_.barrier());
    const Stopwatch watch;
    for (int64_t b = 0; b < kBatches; ++b) RECMILL_RETURN_IF_ERROR(go(way));
    RECMILL_RETURN_IF_ERROR(all_.barrier());
    const double seconds = watch.seconds();
    if (counts) way.seconds.push_back(seconds / kBatches);
    return check_rows(way);
  }

  Status count_moved(Way& way) {
    RECMILL_ASSIGN_OR_RETURN(const auto of_all,
                             gather_values(way.store->stats().moved.total(), all_));
    for (const int64_t rows : of_all) way.moved += static_cast<double>(rows);
    way.moved /= static_cast<double>(way.trained);
    return {};
  }

  static void report(const std::deque<Way>& ways, double load, const BenchSink& sink) {
    const Way& forward = ways[0];
    for (const Way& way : ways) {
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

  const BenchOptions& options_;
  Communicator& all_;
  ThreadPool pool_;
  CachedStream stream_;
  LookedUpRows rows_;
  std::vector<uint32_t> checksums_;  // by batches trained
};

}  // namespace

Status run_cached_bench(const BenchOptions& options, const BenchSink& sink) {
  if (options.device != DeviceKind::cpu) return run_gpu_cached_bench(options, sink);
  RECMILL_ASSIGN_OR_RETURN(const auto all, ranks_of_bench("cached", *options.world));
  if (all == nullptr) return {};  // more processes than are needed
  return CachedBench(options, *all).run(sink);
}

}  // namespace recmill::bench
