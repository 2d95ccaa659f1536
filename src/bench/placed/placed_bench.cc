// SPDX-License-Identifier: Apache-2.0
// `bench placed`: plans of several planners carried out by the placed store, on ranks over MPI.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <initializer_list>
#include <memory>

#include "base/clock.h"
#include "base/random.h"
#include "bench/benches.h"
#include "bench/looked_up_rows.h"
#include "bench/placed/placed_cases.h"
#include "bench/placed/placed_shape.h"
#include "bench/start_together.h"
#include "comm/gather_values.h"
#include "comm/measure_links.h"
#include "placement/planners.h"
#include "store/placed/placed_store.h"

namespace recmill::bench {
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
  int slices = 8;
  std::vector<SparseBatch> batches;
  LookedUpRows rows;

  static Result<Inputs> make(const FrozenShape& shape, int rank, int ranks, ThreadPool& pool) {
    Inputs inputs;
    inputs.model = small_model(shape);
    while (inputs.slices < ranks) inputs.slices *= 2;
    const ShapeDraw draw(shape, kZipf, kTimedSeed);
    inputs.batches.resize(kBatches);
    for (int64_t b = 0; b < kBatches; ++b)
      draw.draw((b * ranks + rank) * kRankSamples, kRankSamples, inputs.batches[b], pool);
    RECMILL_ASSIGN_OR_RETURN(
        inputs.rows, LookedUpRows::make(kRankSamples, std::ssize(inputs.model.features), kDim));
    return inputs;
  }
};

/// One plan carried out in one way.
struct Way {
  std::string label;
  PlannerKind planner = PlannerKind::oper;
  Task task = Task::forward;
  store::ShardedOptions options;
  double extra_memory = placement::PlannerOptions().extra_memory;
  bool copies_alone = false;  // where rows have no copies, they are placed table-wise
  std::unique_ptr<store::PlacedStore> store;
  int64_t iteration = 0;
  std::vector<double> seconds;  // a batch, by repetition
  double sent = 0;              // bytes in a batch, of the rank that sends the most
};

/// The bars of OPER's figure 9 (a), in order; one without any comes before the first.
enum Optimization { one_call, balanced, duplicates, overlap, dedup, kOptimizations };
constexpr std::array<const char*, kOptimizations> kOptimizationNames{
    "one_call", "balanced", "duplicates", "overlap", "dedup"};

/// Inference with some of the optimizations.
Way way_with(std::initializer_list<Optimization> some, std::string label) {
  const auto has = [&](Optimization one) { return std::ranges::find(some, one) != some.end(); };
  Way way;
  way.label = std::move(label);
  way.task = Task::inference;
  way.options = {has(dedup), CopyReduce::automatic, has(one_call), has(overlap),
                 /*share_rows=*/false};
  way.planner = has(balanced) || has(duplicates) ? PlannerKind::oper : PlannerKind::table_wise;
  if (!has(duplicates)) way.extra_memory = 0;
  way.copies_alone = has(duplicates) && !has(balanced);
  return way;
}

/// `plan`, but that rows which have copies in `copied` have one on every device.
PlacementPlan with_copies_of(PlacementPlan plan, const PlacementPlan& copied) {
  for (size_t t = 0; t < plan.tables.size(); ++t) {
    TablePlacement& table = plan.tables[t];
    RECMILL_CHECK(table.column_devices.empty() && table.listed_rows.empty(), table.table);
    PathCursor at(table), at_copied(copied.tables[t]);
    for (int64_t row = 0; row < table.rows; ++row) {
      if (copied.paths[at_copied.at(row)].copies() == 1) continue;
      const int home = plan.paths[at.at(row)].home;
      table.listed_paths.push_back(plan.path(FetchPath::everywhere(home, plan.devices)));
      table.listed_rows.push_back(row);
    }
  }
  return plan;
}

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
    return run_figure9a(sink);
  }

 private:
  Status run_task(Task task, bool dedup, const BenchSink& sink) {
    const std::string name = fmt::format("{}_{}", name_of(task), dedup ? "dedup" : "nodedup");
    if (!options_.wants(name)) return {};
    std::deque<Way> ways;
    for (const PlannerKind planner : {PlannerKind::oper, PlannerKind::table_wise,
                                      PlannerKind::torchrec_like, PlannerKind::row_wise}) {
      ways.emplace_back();
      ways.back().label = recmill::name_of(planner);
      ways.back().planner = planner;
      ways.back().task = task;
      ways.back().options.dedup_fetch = dedup;
    }
    RECMILL_ASSIGN_OR_RETURN(const double load, measure(ways));
    if (all_.rank() == 0) report(name, ways, load, sink);
    return {};
  }

  // Each alone, then one after the other as the figure has them.
  Status run_figure9a(const BenchSink& sink) {
    if (!options_.wants("figure9a")) return {};
    std::deque<Way> ways;
    ways.push_back(way_with({}, "figure9a_none"));
    for (int one = 0; one < kOptimizations; ++one)
      ways.push_back(way_with({static_cast<Optimization>(one)},
                              std::string("figure9a_") + kOptimizationNames[one]));
    ways.push_back(way_with({one_call, balanced}, "figure9a_first_2"));
    ways.push_back(way_with({one_call, balanced, duplicates}, "figure9a_first_3"));
    ways.push_back(way_with({one_call, balanced, duplicates, overlap}, "figure9a_first_4"));
    ways.push_back(way_with({one_call, balanced, duplicates, overlap, dedup}, "figure9a_all"));
    RECMILL_ASSIGN_OR_RETURN(const double load, measure(ways));
    if (all_.rank() == 0) report_figure9a(ways, load, sink);
    return {};
  }

  // Places and times all ways in turns. Gives the foreign load.
  Result<double> measure(std::deque<Way>& ways) {
    for (Way& way : ways) RECMILL_RETURN_IF_ERROR(place(way));
    RECMILL_RETURN_IF_ERROR(check_answers(ways));
    RECMILL_ASSIGN_OR_RETURN(StartTogether together, StartTogether::make(all_));
    RECMILL_RETURN_IF_ERROR(
        together.take_turns(ways.size(), options_.pairs,
                            [&](size_t way, bool counts) { return time(ways[way], counts); }));
    return together.foreign_load();
  }

  Status place(Way& way) {
    const placement::Problem problem =
        small_problem(inputs_.model, counts_, all_.ranks(), links_, way.task != Task::inference,
                      way.options.dedup_fetch);
    placement::PlannerOptions options;
    options.extra_memory = way.extra_memory;
    RECMILL_ASSIGN_OR_RETURN(auto proposal, plan_placement(problem, way.planner, options));
    if (way.copies_alone) {
      RECMILL_ASSIGN_OR_RETURN(auto table_wise, plan_table_wise(problem));
      proposal.plan = with_copies_of(std::move(table_wise.plan), proposal.plan);
    }
    RECMILL_ASSIGN_OR_RETURN(auto placed, table::PlacedTables::create(
                                              proposal.plan, inputs_.model.tables, all_.ranks()));
    RECMILL_ASSIGN_OR_RETURN(way.store, store::PlacedStore::create(inputs_.model, 1, all_, pool_,
                                                                   std::move(placed), way.options));
    return {};
  }

  Result<std::unique_ptr<store::Prepared>> prepare(Way& way, int64_t index,
                                                   store::Purpose purpose) {
    return way.store->prepare(part_of_batch(inputs_.batches[index], all_.rank(), all_.ranks(),
                                            inputs_.slices, way.iteration, purpose));
  }
  store::Purpose purpose(const Way& way) const {
    return way.task == Task::training ? store::Purpose::train : store::Purpose::serve;
  }

  // Rows looked up are the gradient as well.
  Status go(Way& way, store::Prepared& prepared) {
    Stream stream(pool_);
    RECMILL_RETURN_IF_ERROR(way.store->lookup(prepared, inputs_.rows.output(), stream));
    if (way.task != Task::training) return {};
    const store::Update update{&prepared, inputs_.rows.gradient()};
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
        const uint32_t now = inputs_.rows.checksum();
        if (&way == &ways[0]) expected = now;
        if (now != expected)
          return Status::Failed(way.label + ": batch " + std::to_string(b) +
                                " looks up other rows than with " + ways[0].label);
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
    RECMILL_ASSIGN_OR_RETURN(const auto of_all, gather_values(sent, all_));
    way.sent = static_cast<double>(std::ranges::max(of_all)) / kBatches;
    return {};
  }

  static void report_figure9a(const std::deque<Way>& ways, double load, const BenchSink& sink) {
    for (const Way& way : ways) {
      BenchLine line;
      line.bench = "placed";
      line.name = way.label;
      line.metric = "time_per_batch";
      line.value = 1e3 * median(way.seconds);
      line.unit = "ms";
      if (&way != &ways[0]) {
        line.rival = "none";
        line.ratio = ratio_of({way.seconds, ways[0].seconds, load});
      }
      line.foreign_load = load;
      sink(line);
      line.metric = "sent_per_batch";
      line.value = way.sent / (1 << 20);
      line.unit = "MiB";
      line.rival = "";
      line.ratio = {};
      sink(line);
    }
  }

  static void report(const std::string& name, const std::deque<Way>& ways, double load,
                     const BenchSink& sink) {
    for (const Way& way : ways) {
      BenchLine line;
      line.bench = "placed";
      line.name = name;
      line.metric = "time_per_batch_" + way.label;
      line.value = 1e3 * median(way.seconds);
      line.unit = "ms";
      if (&way != &ways[0]) {
        line.rival = way.label;
        line.metric = "time_per_batch";
        line.value = 1e3 * median(ways[0].seconds);
        line.ratio = ratio_of({ways[0].seconds, way.seconds, load});
      }
      line.foreign_load = load;
      sink(line);
      line.metric = "sent_per_batch_" + way.label;
      line.value = way.sent / (1 << 20);
      line.unit = "MiB";
      line.rival = "";
      line.ratio = {};
      sink(line);
    }
  }

  const BenchOptions& options_;
  Communicator& all_;
  ThreadPool pool_;
  Inputs inputs_;
  AccessCounts counts_;
  std::vector<LinkSpec> links_;
};

}  // namespace

Status run_placed_bench(const BenchOptions& options, const BenchSink& sink) {
  RECMILL_ASSIGN_OR_RETURN(const auto all, ranks_of_bench("placed", *options.world));
  if (all == nullptr) return {};  // more processes than are needed
  RECMILL_RETURN_IF_ERROR(PlacedBench(options, *all).run(sink));
  RECMILL_RETURN_IF_ERROR(run_end_to_end_cases(options, *all, sink));
  RECMILL_RETURN_IF_ERROR(run_host_cases(options, *all, sink));
  return run_drift_cases(options, *all, sink);
}

}  // namespace recmill::bench
