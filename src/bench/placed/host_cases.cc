// SPDX-License-Identifier: Apache-2.0
// What it costs that rows of one host are stored at two ranks.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/hash.h"
#include "bench/looked_up_rows.h"
#include "bench/placed/placed_cases.h"
#include "bench/placed/placed_model.h"
#include "bench/placed/placed_shape.h"
#include "bench/start_together.h"
#include "comm/gather_values.h"
#include "comm/measure_links.h"
#include "comm/threads.h"
#include "placement/planners.h"
#include "store/table_store.h"

namespace recmill::bench {
namespace {

constexpr int64_t kBatches = 8, kDim = 64;
constexpr double kZipf = 1.2;
constexpr int kSlices = PlacedModel::kSlices;

/// A store at some of a batch's ranks, the batches as these see them, and memory for their rows.
struct Contestant {
  std::unique_ptr<store::EmbeddingStore> store;
  int rank = 0, ranks = 1;
  ThreadPool* pool = nullptr;
  std::vector<SparseBatch> batches;
  LookedUpRows rows;
  int64_t iteration = 0;
  std::vector<double> lookups, iterations, preparations;  // seconds a batch, by repetition

  Status draw(const FrozenShape& shape, int64_t samples) {
    const ShapeDraw source(shape, kZipf, kTimedSeed);
    batches.resize(kBatches);
    for (int64_t b = 0; b < kBatches; ++b)
      source.draw((b * ranks + rank) * samples, samples, batches[b], *pool);
    RECMILL_ASSIGN_OR_RETURN(rows, LookedUpRows::make(samples, std::ssize(shape.rows), kDim));
    return {};
  }

  Result<std::unique_ptr<store::Prepared>> prepare(int64_t b, int64_t at) {
    return store->prepare(
        part_of_batch(batches[b], rank, ranks, kSlices, at, store::Purpose::train));
  }
  Status look_up(store::Prepared& prepared) {
    Stream stream(*pool);
    return store->lookup(prepared, rows.output(), stream);
  }
  // Rows looked up are the gradient as well.
  Status update(store::Prepared& prepared) {
    Stream stream(*pool);
    const store::Update update{&prepared, rows.gradient()};
    return store->update({&update, 1}, {iteration++, 1.0}, stream);
  }
};

class HostBench {
 public:
  HostBench(const BenchOptions& options, Communicator& all, placement::PlannerKind planner)
      : options_(options),
        all_(all),
        planner_(planner),
        alone_(ThreadsGroup(1).communicator(0)),
        own_pool_(std::max<int>(1, static_cast<int>(options.threads) / all.ranks())),
        pool_(all.rank() == 0 ? static_cast<int>(options.threads) : 1) {}

  Status run(const BenchSink& sink) {
    if (!wants("host_placed_forward") && !wants("host_placed_training") && !wants("prepare"))
      return {};
    RECMILL_RETURN_IF_ERROR(make_stores());
    RECMILL_RETURN_IF_ERROR(check_answers());
    RECMILL_ASSIGN_OR_RETURN(StartTogether together, StartTogether::make(all_));
    for (int64_t pair = 0; pair <= options_.pairs; ++pair) {
      for (int turn = 0; turn < 2; ++turn) {
        Contestant& one = (turn + pair) % 2 == 0 ? placed_ : local_;
        RECMILL_RETURN_IF_ERROR(together.start(pair > 0));
        RECMILL_RETURN_IF_ERROR(time(one, pair > 0));
      }
    }
    std::vector<double> whole;
    if (wants("prepare")) {
      RECMILL_ASSIGN_OR_RETURN(whole, time_model(together));
    }
    if (all_.rank() == 0) report(whole, together.foreign_load(), sink);
    return {};
  }

 private:
  std::string name_of(const char* what) const {
    return fmt::format("{}_{}", what, recmill::name_of(planner_));
  }
  bool wants(const char* what) const { return options_.wants(name_of(what)); }

  Status make_stores() {
    const FrozenShape shape = small_shape("kaggle", kDim);
    model_ = small_model(shape);
    RECMILL_ASSIGN_OR_RETURN(const auto counts,
                             draw_counts(shape, kZipf, kCountedSeed, kCounted, own_pool_));
    RECMILL_ASSIGN_OR_RETURN(const auto links, measure_links(all_));
    const placement::Problem problem = small_problem(model_, counts, all_.ranks(), links,
                                                     /*training=*/true, /*dedup=*/true);
    RECMILL_ASSIGN_OR_RETURN(auto proposal, placement::plan_placement(problem, planner_, {}));
    plan_ = std::move(proposal.plan);
    RECMILL_ASSIGN_OR_RETURN(auto placed,
                             table::PlacedTables::create(plan_, model_.tables, all_.ranks()));
    RECMILL_ASSIGN_OR_RETURN(
        placed_.store, store::PlacedStore::create(model_, 1, all_, own_pool_, std::move(placed)));
    placed_.rank = all_.rank();
    placed_.ranks = all_.ranks();
    placed_.pool = &own_pool_;
    RECMILL_RETURN_IF_ERROR(placed_.draw(shape, kRankSamples));
    if (all_.rank() != 0) return {};
    RECMILL_ASSIGN_OR_RETURN(local_.store, store::create_table_store(model_, 1, *alone_, pool_));
    local_.pool = &pool_;
    return local_.draw(shape, kRankSamples * all_.ranks());
  }

  // Trains batches at both: what each rank looks up is its part of what one rank does.
  Status check_answers() {
    for (int64_t b = 0; b < 2; ++b) {
      std::vector<uint32_t> expected;
      if (all_.rank() == 0) {
        RECMILL_ASSIGN_OR_RETURN(const auto prepared, local_.prepare(b, local_.iteration));
        RECMILL_RETURN_IF_ERROR(local_.look_up(*prepared));
        const auto values = std::as_bytes(local_.rows.values());
        const size_t part = values.size() / all_.ranks();
        for (int rank = 0; rank < all_.ranks(); ++rank)
          expected.push_back(crc32c(values.subspan(rank * part, part)));
        RECMILL_RETURN_IF_ERROR(local_.update(*prepared));
      }
      expected.resize(all_.ranks());
      RECMILL_RETURN_IF_ERROR(
          all_.broadcast(std::as_writable_bytes(std::span(expected)), /*root=*/0));
      RECMILL_ASSIGN_OR_RETURN(const auto prepared, placed_.prepare(b, placed_.iteration));
      RECMILL_RETURN_IF_ERROR(placed_.look_up(*prepared));
      if (placed_.rows.checksum() != expected[all_.rank()])
        return Status::Failed(fmt::format("{}: batch {} looks up other rows than the local store",
                                          name_of("host_placed"), b));
      RECMILL_RETURN_IF_ERROR(placed_.update(*prepared));
    }
    return {};
  }

  // A phase of all batches, until the slowest rank is at its end: who is alone waits for nobody.
  template <typename Phase>
  Status timed(const Contestant& one, std::vector<double>& seconds, bool counts,
               const Phase& phase) {
    RECMILL_RETURN_IF_ERROR(all_.barrier());
    const Stopwatch watch;
    for (int64_t b = 0; one.store != nullptr && b < kBatches; ++b)
      RECMILL_RETURN_IF_ERROR(phase(b));
    const double alone = watch.seconds();
    RECMILL_RETURN_IF_ERROR(all_.barrier());
    if (counts) seconds.push_back((one.ranks == 1 ? alone : watch.seconds()) / kBatches);
    return {};
  }

  Status time(Contestant& one, bool counts) {
    std::vector<std::unique_ptr<store::Prepared>> prepared(kBatches);
    const int64_t first = one.iteration;
    RECMILL_RETURN_IF_ERROR(timed(one, one.preparations, counts, [&](int64_t b) -> Status {
      RECMILL_ASSIGN_OR_RETURN(prepared[b], one.prepare(b, first + b));
      return {};
    }));
    RECMILL_RETURN_IF_ERROR(
        timed(one, one.lookups, counts, [&](int64_t b) { return one.look_up(*prepared[b]); }));
    return timed(one, one.iterations, counts, [&](int64_t b) -> Status {
      RECMILL_RETURN_IF_ERROR(one.look_up(*prepared[b]));
      return one.update(*prepared[b]);
    });
  }

  // Whole iterations of a DLRM, which prepare their batch.
  Result<std::vector<double>> time_model(StartTogether& together) {
    RECMILL_ASSIGN_OR_RETURN(const auto dlrm,
                             PlacedModel::make(model_, plan_, {}, all_, own_pool_));
    auto batches = PlacedModel::draw(ShapeDraw(small_shape("kaggle", kDim), kZipf, kTimedSeed), 2,
                                     store::Purpose::train, all_, own_pool_);
    std::vector<double> seconds;
    for (int64_t pair = 0; pair <= options_.pairs; ++pair) {
      RECMILL_RETURN_IF_ERROR(together.start(pair > 0));
      RECMILL_RETURN_IF_ERROR(all_.barrier());
      const Stopwatch watch;
      for (train::RankBatch& batch : batches) RECMILL_RETURN_IF_ERROR(dlrm->go(batch).status());
      RECMILL_RETURN_IF_ERROR(all_.barrier());
      if (pair > 0) seconds.push_back(watch.seconds() / static_cast<double>(batches.size()));
    }
    return seconds;
  }

  void report(const std::vector<double>& whole, double load, const BenchSink& sink) const {
    BenchLine line;
    line.bench = "placed";
    line.foreign_load = load;
    const auto compare = [&](const char* name, const std::vector<double>& ours,
                             const std::vector<double>& rivals) {
      if (!wants(name)) return;
      line.name = name_of(name);
      line.metric = "time_per_batch";
      line.unit = "ms";
      line.rival = "local_store";
      line.value = 1e3 * median(ours);
      line.ratio = ratio_of({ours, rivals, load});
      sink(line);
    };
    compare("host_placed_forward", placed_.lookups, local_.lookups);
    compare("host_placed_training", placed_.iterations, local_.iterations);
    if (!wants("prepare")) return;
    compare("prepare", placed_.preparations, local_.preparations);
    const double added = median(placed_.preparations) - median(local_.preparations);
    line.rival = "";
    line.ratio = {};
    line.unit = "%";
    line.metric = "added_to_embedding_iteration";
    line.value = 100 * added / (median(placed_.iterations) + median(placed_.preparations));
    sink(line);
    line.metric = "added_to_training_iteration";
    line.value = 100 * added / median(whole);
    sink(line);
  }

  const BenchOptions& options_;
  Communicator& all_;
  const placement::PlannerKind planner_;
  const std::unique_ptr<Communicator> alone_;
  ThreadPool own_pool_, pool_;
  ModelSpec model_;
  PlacementPlan plan_;
  Contestant placed_, local_;  // of the first rank alone: local_
};

}  // namespace

Status run_host_cases(const BenchOptions& options, Communicator& all, const BenchSink& sink) {
  if (all.ranks() != 2 || !all.shares_memory()) return {};
  for (const auto planner : {placement::PlannerKind::oper, placement::PlannerKind::row_wise})
    RECMILL_RETURN_IF_ERROR(HostBench(options, all, planner).run(sink));
  return {};
}

}  // namespace recmill::bench
