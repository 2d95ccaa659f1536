// SPDX-License-Identifier: Apache-2.0
// `bench reduce`: the ways in which gradients of rows with copies become the same sums everywhere.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <vector>

#include "base/clock.h"
#include "bench/benches.h"
#include "bench/looked_up_rows.h"
#include "bench/start_together.h"
#include "comm/gather_values.h"
#include "comm/measure_links.h"
#include "placement_plan/placement_plan.h"
#include "store/placed/placed_store.h"

namespace recmill::bench {
namespace {

constexpr int kTables = 26, kSlices = 8;
constexpr int64_t kRows = 1000, kDim = 64, kSamples = 4096;
constexpr std::array kShares{1, 2, 5, 10, 20, 50, 75, 100};
constexpr std::array kWays{CopyReduce::automatic, CopyReduce::sparse, CopyReduce::dense,
                           CopyReduce::all_gather};

/// In a repetition: the more the shorter they are, so that it takes half a second at least.
constexpr int64_t updates_of(CopyReduce way, int percent) {
  return way == CopyReduce::dense ? 4 : std::max(4, 200 / percent);
}

ModelSpec make_model() {
  ModelSpec model;
  for (int t = 0; t < kTables; ++t) {
    TableSpec& table = model.tables.emplace_back();
    table.name = "t" + std::to_string(t);
    table.rows = kRows;
    table.dim = kDim;
    table.optimizer.kind = OptimizerKind::rowwise_adagrad;
    FeatureSpec& feature = model.features.emplace_back();
    feature.name = table.name;
    feature.table = t;
  }
  return model;
}

/// Each row everywhere, an equal part of each table at home at each rank.
PlacementPlan everywhere(const ModelSpec& model, int ranks) {
  PlacementPlan plan;
  plan.planner = "edited";
  plan.devices = ranks;
  for (const TableSpec& spec : model.tables) {
    TablePlacement& table = plan.tables.emplace_back();
    table.table = spec.name;
    table.rows = spec.rows;
    table.dim = spec.dim;
    for (int rank = 0; rank < ranks; ++rank)
      table.runs.push_back(
          {spec.rows * (rank + 1) / ranks, plan.path(FetchPath::everywhere(rank, ranks))});
  }
  return plan;
}

/// Every one of `rows` is looked up as often as every other, or once more.
SparseBatch batch_of(const ModelSpec& model, std::span<const int64_t> rows) {
  SparseBatch batch;
  batch.samples = kSamples;
  batch.features.resize(model.features.size());
  for (SparseFeature& feature : batch.features) {
    for (int64_t i = 0; i < kSamples; ++i)
      feature.rows.push_back(rows[i % static_cast<int64_t>(rows.size())]);
    feature.offsets.resize(kSamples + 1);
    std::iota(feature.offsets.begin(), feature.offsets.end(), 0);
  }
  return batch;
}

/// Rows of a table that a rank looks up where all ranks together touch `percent` of them: spread
/// over the table, so that all homes have as many.
std::vector<int64_t> touched(int percent, bool same, int rank, int ranks) {
  std::vector<int64_t> rows;
  const int64_t count = std::max<int64_t>(kRows * percent / 100, ranks);
  for (int64_t i = 0; i < count; ++i)
    if (same || i % ranks == rank) rows.push_back(i * kRows / count);
  return rows;
}

struct Way {
  CopyReduce reduce = CopyReduce::automatic;
  std::unique_ptr<store::PlacedStore> store;
  int64_t iteration = 0;
  std::vector<double> seconds;  // an update, by repetition
  double sent = 0;              // bytes of an update, of the rank that sends the most
};

class ReduceBench {
 public:
  ReduceBench(const BenchOptions& options, Communicator& all)
      : options_(options),
        all_(all),
        pool_(std::max<int>(1, static_cast<int>(options.threads) / all.ranks())),
        model_(make_model()) {}

  Status run(const BenchSink& sink) {
    RECMILL_ASSIGN_OR_RETURN(rows_, LookedUpRows::make(kSamples, kTables, kDim));
    RECMILL_ASSIGN_OR_RETURN(const auto links, measure_links(all_));
    std::vector<double> bytes;
    for (const LinkSpec& link : links)
      if (link.byte_seconds > 0) bytes.push_back(link.byte_seconds);
    byte_seconds_ = median(bytes);
    for (const bool same : {true, false})
      for (const int percent : kShares) RECMILL_RETURN_IF_ERROR(run_case(same, percent, sink));
    return {};
  }

 private:
  Status run_case(bool same, int percent, const BenchSink& sink) {
    const std::string name = fmt::format("{}_{}pct", same ? "same" : "apart", percent);
    if (!options_.wants(name)) return {};
    batch_ = batch_of(model_, touched(percent, same, all_.rank(), all_.ranks()));
    RECMILL_ASSIGN_OR_RETURN(
        const auto placed,
        table::PlacedTables::create(everywhere(model_, all_.ranks()), model_.tables, all_.ranks()));
    std::vector<Way> ways;
    for (const CopyReduce reduce : kWays) {
      Way& way = ways.emplace_back();
      way.reduce = reduce;
      store::ShardedOptions options;
      options.reduce = reduce;
      RECMILL_ASSIGN_OR_RETURN(way.store,
                               store::PlacedStore::create(model_, 1, all_, pool_, placed, options));
    }
    RECMILL_RETURN_IF_ERROR(check_answers(name, ways));
    RECMILL_ASSIGN_OR_RETURN(StartTogether together, StartTogether::make(all_));
    RECMILL_RETURN_IF_ERROR(
        together.take_turns(std::ssize(ways), options_.pairs, [&](size_t way, bool counts) {
          return time(ways[way], updates_of(ways[way].reduce, percent), counts);
        }));
    if (all_.rank() == 0) report(name, ways, together.foreign_load(), sink);
    return {};
  }

  Result<std::unique_ptr<store::Prepared>> look_up(Way& way, store::Purpose purpose) {
    RECMILL_ASSIGN_OR_RETURN(
        auto prepared, way.store->prepare(part_of_batch(batch_, all_.rank(), all_.ranks(), kSlices,
                                                        way.iteration, purpose)));
    Stream stream(pool_);
    RECMILL_RETURN_IF_ERROR(way.store->lookup(*prepared, rows_.output(), stream));
    return prepared;
  }

  // Rows looked up are the gradient as well.
  Status time(Way& way, int64_t updates, bool counts) {
    double seconds = 0;
    uint64_t sent = 0;
    for (int64_t i = 0; i < updates; ++i, ++way.iteration) {
      RECMILL_ASSIGN_OR_RETURN(const auto prepared, look_up(way, store::Purpose::train));
      const store::Update update{prepared.get(), rows_.gradient()};
      Stream stream(pool_);
      RECMILL_RETURN_IF_ERROR(all_.barrier());
      const uint64_t before = all_.traffic().sent;
      const Stopwatch watch;
      RECMILL_RETURN_IF_ERROR(way.store->update({&update, 1}, {way.iteration, 1.0}, stream));
      sent += all_.traffic().sent - before;
      RECMILL_RETURN_IF_ERROR(all_.barrier());
      seconds += watch.seconds();
    }
    if (!counts) return {};
    way.seconds.push_back(seconds / static_cast<double>(updates));
    RECMILL_ASSIGN_OR_RETURN(const auto of_all, gather_values(sent, all_));
    way.sent = static_cast<double>(std::ranges::max(of_all)) / static_cast<double>(updates);
    return {};
  }

  // After some updates rows are the same.
  Status check_answers(const std::string& name, std::vector<Way>& ways) {
    uint32_t expected = 0;
    for (Way& way : ways) {
      RECMILL_RETURN_IF_ERROR(time(way, /*updates=*/3, /*counts=*/false));
      RECMILL_RETURN_IF_ERROR(look_up(way, store::Purpose::serve).status());
      const uint32_t now = rows_.checksum();
      if (&way == &ways[0]) expected = now;
      if (now != expected)
        return Status::Failed(fmt::format("{}: rows differ between {} and {}", name,
                                          name_of(way.reduce), name_of(ways[0].reduce)));
    }
    return {};
  }

  void report(const std::string& name, const std::vector<Way>& ways, double load,
              const BenchSink& sink) const {
    const Way& best = *std::min_element(
        ways.begin() + 1, ways.end(),
        [](const Way& a, const Way& b) { return median(a.seconds) < median(b.seconds); });
    BenchLine line;
    line.bench = "reduce";
    line.name = name;
    line.foreign_load = load;
    for (const Way& way : ways) {
      const Way& rival = way.reduce == CopyReduce::automatic ? best : ways[2];
      line.metric = fmt::format("time_per_update_{}", name_of(way.reduce));
      line.value = 1e3 * median(way.seconds);
      line.unit = "ms";
      line.limit = 1e3 * way.sent * byte_seconds_;
      line.of_limit = line.limit / line.value;
      if (way.reduce != CopyReduce::dense) {
        line.rival = name_of(rival.reduce);
        line.ratio = ratio_of({way.seconds, rival.seconds, load});
      }
      sink(line);
      line.metric = fmt::format("sent_per_update_{}", name_of(way.reduce));
      line.value = way.sent / (1 << 20);
      line.unit = "MiB";
      line.rival = "";
      line.ratio = {};
      line.limit = line.of_limit = 0;
      sink(line);
    }
  }

  const BenchOptions& options_;
  Communicator& all_;
  ThreadPool pool_;
  const ModelSpec model_;
  LookedUpRows rows_;
  SparseBatch batch_;
  double byte_seconds_ = 0;  // of a link
};

}  // namespace

Status run_reduce_bench(const BenchOptions& options, const BenchSink& sink) {
  RECMILL_ASSIGN_OR_RETURN(const auto all, ranks_of_bench("reduce", *options.world));
  return all == nullptr ? Status() : ReduceBench(options, *all).run(sink);
}

}  // namespace recmill::bench
