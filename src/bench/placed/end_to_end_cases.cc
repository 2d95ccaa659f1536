// SPDX-License-Identifier: Apache-2.0
// OPER's figure 6: whole training iterations and whole answers by plans of several planners.
#include <fmt/format.h>

#include <deque>
#include <memory>

#include "base/clock.h"
#include "bench/placed/placed_cases.h"
#include "bench/placed/placed_model.h"
#include "bench/placed/placed_shape.h"
#include "bench/start_together.h"
#include "comm/measure_links.h"
#include "placement/planners.h"

namespace recmill::bench {
namespace {

using placement::PlannerKind;

constexpr int64_t kBatches = 2;
constexpr double kZipf = 1.2;

struct Way {
  PlannerKind planner = PlannerKind::oper;
  std::unique_ptr<PlacedModel> model;
  std::vector<double> seconds;  // a batch, by repetition
};

class EndToEnd {
 public:
  EndToEnd(const BenchOptions& options, Communicator& all)
      : options_(options),
        all_(all),
        pool_(std::max<int>(1, static_cast<int>(options.threads) / all.ranks())) {}

  Status run(const std::string& name, bool training, const BenchSink& sink) {
    const std::string full =
        fmt::format("end_to_end_{}_{}", training ? "training" : "inference", name);
    if (!options_.wants(full)) return {};
    const FrozenShape shape = small_shape(name);
    auto batches =
        PlacedModel::draw(ShapeDraw(shape, kZipf, kTimedSeed), kBatches,
                          training ? store::Purpose::train : store::Purpose::serve, all_, pool_);
    std::deque<Way> ways;
    for (const PlannerKind planner :
         {PlannerKind::oper, PlannerKind::table_wise, PlannerKind::torchrec_like})
      ways.emplace_back().planner = planner;
    RECMILL_RETURN_IF_ERROR(place(shape, training, ways));
    RECMILL_RETURN_IF_ERROR(check_answers(full, ways, batches));
    RECMILL_ASSIGN_OR_RETURN(StartTogether together, StartTogether::make(all_));
    RECMILL_RETURN_IF_ERROR(together.take_turns(
        ways.size(), options_.pairs,
        [&](size_t way, bool counts) { return time(ways[way], batches, counts); }));
    if (all_.rank() == 0) report(full, ways, together.foreign_load(), sink);
    return {};
  }

 private:
  Status place(const FrozenShape& shape, bool training, std::deque<Way>& ways) {
    const ModelSpec model = small_model(shape);
    store::ShardedOptions placing;
    placing.dedup_fetch = false;
    RECMILL_ASSIGN_OR_RETURN(const AccessCounts counts,
                             draw_counts(shape, kZipf, kCountedSeed, kCounted, pool_));
    RECMILL_ASSIGN_OR_RETURN(const auto links, measure_links(all_));
    const placement::Problem problem =
        small_problem(model, counts, all_.ranks(), links, training, /*dedup=*/false);
    for (Way& way : ways) {
      RECMILL_ASSIGN_OR_RETURN(const auto proposal,
                               placement::plan_placement(problem, way.planner, {}));
      RECMILL_ASSIGN_OR_RETURN(way.model,
                               PlacedModel::make(model, proposal.plan, placing, all_, pool_));
    }
    return {};
  }

  static Status check_answers(const std::string& name, std::deque<Way>& ways,
                              std::vector<train::RankBatch>& batches) {
    for (train::RankBatch& batch : batches) {
      double expected = 0;
      for (Way& way : ways) {
        RECMILL_ASSIGN_OR_RETURN(const double loss, way.model->go(batch));
        if (&way == &ways[0]) expected = loss;
        if (loss != expected)
          return Status::Failed(fmt::format("{}: the loss with {} is {}, and {} with {}", name,
                                            recmill::name_of(way.planner), loss, expected,
                                            recmill::name_of(ways[0].planner)));
      }
    }
    return {};
  }

  Status time(Way& way, std::vector<train::RankBatch>& batches, bool counts) {
    RECMILL_RETURN_IF_ERROR(all_.barrier());
    const Stopwatch watch;
    for (train::RankBatch& batch : batches) RECMILL_RETURN_IF_ERROR(way.model->go(batch).status());
    RECMILL_RETURN_IF_ERROR(all_.barrier());
    if (counts) way.seconds.push_back(watch.seconds() / kBatches);
    return {};
  }

  void report(const std::string& name, const std::deque<Way>& ways, double load,
              const BenchSink& sink) const {
    const double samples = static_cast<double>(kRankSamples) * all_.ranks();
    for (const Way& way : ways) {
      BenchLine line;
      line.bench = "placed";
      line.name = name;
      line.metric = fmt::format("samples_per_second_{}", recmill::name_of(way.planner));
      line.value = samples / median(way.seconds);
      line.unit = "samples/s";
      line.foreign_load = load;
      if (&way != &ways[0]) {
        line.rival = recmill::name_of(way.planner);
        line.metric = "samples_per_second";
        line.value = samples / median(ways[0].seconds);
        line.ratio = ratio_of({ways[0].seconds, way.seconds, load});
      }
      sink(line);
    }
  }

  const BenchOptions& options_;
  Communicator& all_;
  ThreadPool pool_;
};

}  // namespace

Status run_end_to_end_cases(const BenchOptions& options, Communicator& all, const BenchSink& sink) {
  EndToEnd cases(options, all);
  for (const char* shape : {"avazu", "kaggle", "terabyte"})
    for (const bool training : {true, false})
      RECMILL_RETURN_IF_ERROR(cases.run(shape, training, sink));
  return {};
}

}  // namespace recmill::bench
