// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/placed/placed_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>

#include "base/clock.h"
#include "base/hash.h"
#include "base/random.h"
#include "cli/bench/placed/end_to_end_cases.h"
#include "cli/bench/placed/placed_shape.h"
#include "cli/bench/start_together.h"
#include "comm/measure_links.h"
#include "placement/planners.h"
#include "store/placed_store.h"

namespace recmill::cli {
namespace {

using placement::PlannerKind;

constexpr int64_t kBatches = 4, kDim = 64;
constexpr double kZipf = 1.2;

enum class Task { forward, training, inference };
constexpr const char* name_of(Task task) {
  return task == Task::forward ? "forward" : task == Task::training ? "training" : "inference";
}

/// What all ways are timed on: this rank's samples of some batches, and memory for their rows.
struct Inputs {
  ModelSpec model;
  int shards = 8;
  std::vector<SparseBatch> batches;
  Buffer rows;  // [samples][features][dim]
  std::vector<store::FeatureOutput> output;
  std::vector<store::FeatureGradient> gradient;

  static Result<Inputs> make(const FrozenShape& shape, int rank, int ranks, Pool& pool) {
    Inputs inputs;
    inputs.model = small_model(shape);
    while (inputs.shards < ranks) inputs.shards *= 2;
    const ShapeDraw draw(shape, kZipf, kTimedSeed);
    inputs.batches.resize(kBatches);
    for (int64_t b = 0; b < kBatches; ++b)
      draw.draw((b * ranks + rank) * kRankSamples, kRankSamples, inputs.batches[b], pool);
    const int64_t width = std::ssize(inputs.model.features) * kDim;
    RECMILL_ASSIGN_OR_RETURN(inputs.rows, Buffer::allocate(kRankSamples * width * sizeof(float)));
    for (size_t f = 0; f < inputs.model.features.size(); ++f) {
      float* const data = inputs.rows.as<float>().data() + f * kDim;
      inputs.output.push_back({data, width});
      inputs.gradient.push_back({data, width});
    }
    return inputs;
  }
  store::Batch batch(int64_t index, int64_t iteration, int rank, int ranks,
                     store::Purpose purpose) const {
    store::Batch batch;
    batch.iteration = iteration;
    batch.purpose = purpose;
    batch.cut = {kRankSamples * ranks, shards};
    batch.first_shard = rank * shards / ranks;
    batch.end_shard = (rank + 1) * shards / ranks;
    batch.sparse = &batches[index];
    return batch;
  }
};

/// One plan carried out in one way.
struct Way {
  PlannerKind planner = PlannerKind::oper;
  Task task = Task::forward;
  bool dedup = true;
  std::unique_ptr<store::PlacedStore> store;
  int64_t iteration = 0;
  std::vector<double> seconds;  // a batch, by repetition
  double sent = 0;              // bytes in a batch, of the rank that sends the most

  std::string name() const {
    return fmt::format("{}_{}_{}", name_of(task), dedup ? "dedup" : "nodedup",
                       recmill::name_of(planner));
  }
};

class PlacedBench {
 public:
  PlacedBench(const BenchOptions& options, Communicator& all)
      : options_(options),
        all_(all),
        pool_(std::max<int>(1, static_cast<int>(options.threads) / all.ranks())) {}

  Status run(const BenchSink& sink) {
    const FrozenShape shape = small_shape("kaggle", kDim);
    RECMILL_ASSIGN_OR_RETURN(inputs_, Inputs::make(shape, all_.rank(), all_.ranks(), pool_));
    RECMILL_ASSIGN_OR_RETURN(counts_, draw_counts(shape, kZipf, kCountedSeed, kCounted, pool_));
    RECMILL_ASSIGN_OR_RETURN(links_, measure_links(all_));
    for (const Task task : {Task::forward, Task::training, Task::inference})
      for (const bool dedup : {false, true}) RECMILL_RETURN_IF_ERROR(run_task(task, dedup, sink));
    return {};
  }

 private:
  Status run_task(Task task, bool dedup, const BenchSink& sink) {
    if (!options_.wants(fmt::format("{}_{}", name_of(task), dedup ? "dedup" : "nodedup")))
      return {};
    std::deque<Way> ways;
    for (const PlannerKind planner : {PlannerKind::oper, PlannerKind::table_wise,
                                      PlannerKind::torchrec_like, PlannerKind::row_wise}) {
      ways.emplace_back();
      ways.back().planner = planner;
      ways.back().task = task;
      ways.back().dedup = dedup;
      RECMILL_RETURN_IF_ERROR(place(ways.back()));
    }
    RECMILL_RETURN_IF_ERROR(check_answers(ways));
    RECMILL_ASSIGN_OR_RETURN(StartTogether together, StartTogether::make(all_));
    for (int64_t pair = 0; pair <= options_.pairs; ++pair) {
      for (size_t w = 0; w < ways.size(); ++w) {
        Way& way = ways[(w + static_cast<size_t>(pair)) % ways.size()];
        RECMILL_RETURN_IF_ERROR(together.start(pair > 0));
        RECMILL_RETURN_IF_ERROR(time(way, pair > 0));
      }
    }
    if (all_.rank() != 0) return {};
    report(ways, together.foreign_load(), sink);
    return {};
  }

  Status place(Way& way) {
    const placement::Problem problem = small_problem(inputs_.model, counts_, all_.ranks(), links_,
                                                     way.task != Task::inference, way.dedup);
    RECMILL_ASSIGN_OR_RETURN(const auto proposal, plan_placement(problem, way.planner, {}));
    RECMILL_ASSIGN_OR_RETURN(auto placed, table::PlacedTables::create(
                                              proposal.plan, inputs_.model.tables, all_.ranks()));
    RECMILL_ASSIGN_OR_RETURN(
        way.store, store::PlacedStore::create(inputs_.model, 1, all_, pool_, std::move(placed),
                                              {way.dedup, store::CopyReduce::automatic}));
    return {};
  }

  Result<std::unique_ptr<store::Prepared>> prepare(Way& way, int64_t index,
                                                   store::Purpose purpose) {
    return way.store->prepare(
        inputs_.batch(index, way.iteration, all_.rank(), all_.ranks(), purpose));
  }
  store::Purpose purpose(const Way& way) const {
    return way.task == Task::training ? store::Purpose::train : store::Purpose::serve;
  }

  // Rows looked up are the gradient as well.
  Status go(Way& way, store::Prepared& prepared) {
    Stream stream(pool_);
    RECMILL_RETURN_IF_ERROR(way.store->lookup(prepared, inputs_.output, stream));
    if (way.task != Task::training) return {};
    const store::Update update{&prepared, inputs_.gradient};
    RECMILL_RETURN_IF_ERROR(way.store->update({&update, 1}, {way.iteration, 1.0}, stream));
    ++way.iteration;
    return {};
  }

  // Each batch by each way, one after the other: what is looked up is the same.
  Status check_answers(std::deque<Way>& ways) {
    for (int64_t b = 0; b < 2; ++b) {
      uint32_t expected = 0;
      for (Way& way : ways) {
        RECMILL_ASSIGN_OR_RETURN(const auto prepared, prepare(way, b, purpose(way)));
        RECMILL_RETURN_IF_ERROR(go(way, *prepared));
        const uint32_t now = crc32c(std::as_bytes(inputs_.rows.as<float>()));
        if (&way == &ways[0]) expected = now;
        if (now != expected)
          return Status::Failed(way.name() + ": batch " + std::to_string(b) +
                                " looks up other rows than with " + ways[0].name());
      }
    }
    return {};
  }

  Status time(Way& way, bool counts) {
    std::vector<std::unique_ptr<store::Prepared>> prepared;
    const int64_t first = way.iteration;
    for (int64_t b = 0; b < kBatches; ++b) {
      way.iteration = first + b;
      RECMILL_ASSIGN_OR_RETURN(prepared.emplace_back(), prepare(way, b, purpose(way)));
    }
    way.iteration = first;
    RECMILL_RETURN_IF_ERROR(all_.barrier());
    const uint64_t before = all_.traffic().sent;
    const Stopwatch watch;
    for (auto& of_batch : prepared) RECMILL_RETURN_IF_ERROR(go(way, *of_batch));
    const uint64_t sent = all_.traffic().sent - before;
    RECMILL_RETURN_IF_ERROR(all_.barrier());
    const double seconds = watch.seconds();
    if (!counts) return {};
    way.seconds.push_back(seconds / kBatches);
    RECMILL_ASSIGN_OR_RETURN(const Received of_all,
                             all_.all_gather(std::as_bytes(std::span(&sent, 1))));
    uint64_t most = 0;
    for (int rank = 0; rank < all_.ranks(); ++rank) {
      uint64_t of_rank = 0;
      std::memcpy(&of_rank, of_all.from(rank).data(), sizeof(of_rank));
      most = std::max(most, of_rank);
    }
    way.sent = static_cast<double>(most) / kBatches;
    return {};
  }

  void report(const std::deque<Way>& ways, double load, const BenchSink& sink) const {
    for (const Way& way : ways) {
      BenchLine line;
      line.bench = "placed";
      line.name = fmt::format("{}_{}", name_of(way.task), way.dedup ? "dedup" : "nodedup");
      line.metric = fmt::format("time_per_batch_{}", recmill::name_of(way.planner));
      line.value = 1e3 * median(way.seconds);
      line.unit = "ms";
      if (&way != &ways[0]) {
        line.rival = recmill::name_of(way.planner);
        line.metric = "time_per_batch";
        line.value = 1e3 * median(ways[0].seconds);
        line.ratio = ratio_of({ways[0].seconds, way.seconds, load});
      }
      line.foreign_load = load;
      sink(line);
      line.metric = fmt::format("sent_per_batch_{}", recmill::name_of(way.planner));
      line.value = way.sent / (1 << 20);
      line.unit = "MiB";
      line.rival = "";
      line.ratio = {};
      sink(line);
    }
  }

  const BenchOptions& options_;
  Communicator& all_;
  Pool pool_;
  Inputs inputs_;
  AccessCounts counts_;
  std::vector<LinkSpec> links_;
};

}  // namespace

Status run_placed_bench(const BenchOptions& options, const BenchSink& sink) {
  std::unique_ptr<Communicator> all;
  for (const int ranks : {2, 4, 8}) {
    auto communicator = options.world->communicator(ranks);
    if (!communicator.ok()) break;
    all = *std::move(communicator);
  }
  const auto two = options.world->communicator(2);
  if (!two.ok())
    return Status::BadRequest(
        "bench placed: is of several processes: recmill launch --ranks 4 -- bench placed");
  if (all == nullptr) return {};  // more processes than are needed
  RECMILL_RETURN_IF_ERROR(PlacedBench(options, *all).run(sink));
  return run_end_to_end_cases(options, *all, sink);
}

}  // namespace recmill::cli
