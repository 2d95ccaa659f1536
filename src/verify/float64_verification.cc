// SPDX-License-Identifier: Apache-2.0
#include "verify/float64_verification.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "base/json/json.h"
#include "comm/threads.h"
#include "run/fit_columns.h"
#include "run/gpu/gpu_run.h"
#include "run/hotset/choose_hot_rows.h"
#include "run/hotset/hot_folder.h"
#include "run/memory.h"
#include "run/placement/run_placement.h"
#include "run/rank.h"
#include "run/resolved_run.h"
#include "verify/float64_run.h"

namespace recmill::train {
namespace {

/// Squares of differences, and of the float64 values, in float64.
struct Squares {
  double difference = 0.0, exact = 0.0;
  int64_t elements = 0;

  void add(std::span<const float> values, std::span<const double> expected) {
    for (size_t i = 0; i < values.size(); ++i) {
      const double off = double{values[i]} - expected[i];
      difference += off * off;
      exact += expected[i] * expected[i];
    }
    elements += static_cast<int64_t>(values.size());
  }
  double distance() const {
    if (difference == 0.0) return 0.0;
    return std::sqrt(difference / std::max(exact, 1e-300));
  }
};

/// Of the tables, then of the layers that are trained.
std::vector<Squares> blank(const ResolvedRun& run, const Float64Outcome& exact) {
  return std::vector<Squares>(run.spec.tables.size() + exact.layers.size());
}

Status train_all(DataStage& stage, Rank& rank) {
  while (true) {
    RECMILL_ASSIGN_OR_RETURN(auto batch, stage.next());
    if (batch == nullptr) return {};
    const int64_t iteration = batch->before.iteration;
    const store::Step step{iteration, rank.learning_rate.scale(iteration)};
    RECMILL_RETURN_IF_ERROR(rank.trainer->train(*batch, step).status());
    stage.recycle(std::move(batch));
  }
}

Status train(const ResolvedRun& run, Rank& rank, Communicator& communicator) {
  BatchSchedule schedule = run.schedule(communicator.rank());
  schedule.evaluates = false;
  const auto stage = make_data_stage(run, rank, schedule);
  if (const Status status = train_all(*stage, rank); !status.ok()) {
    communicator.abort(status);  // stages of ranks may wait for each other
    return status;
  }
  return settle(rank);
}

void add_layers(const Float64Outcome& exact, Rank& rank, std::span<Squares> squares) {
  const std::span<const float> parameters = rank.trainer->parameters();
  for (size_t l = 0; l < exact.layers.size(); ++l) {
    const model::ParameterSpec& layer = exact.layers[l];
    for (const model::ParameterSpec& own : rank.model->parameters()) {
      if (own.name != layer.name || !own.trained) continue;
      squares[l].add(parameters.subspan(own.offset, own.size()),
                     std::span(exact.parameters).subspan(layer.offset, layer.size()));
    }
  }
}

// Ranks take turns in no fixed order: the last digits of a table's distance may differ.
Status measure(const ResolvedRun& run, Way way, Files& files, const Float64Outcome& exact,
               std::vector<Squares>& squares) {
  const auto pool = make_pool(run.threads);
  std::mutex mutex;
  return run_ranks(run.ranks, [&](Communicator& communicator) -> Status {
    RECMILL_ASSIGN_OR_RETURN(Rank rank, make_rank(run, way, communicator, *pool, files));
    RECMILL_RETURN_IF_ERROR(train(run, rank, communicator));
    std::lock_guard lock(mutex);
    RECMILL_RETURN_IF_ERROR(rank.store->read_rows([&](const store::RowBlock& block) {
      const int64_t dim = run.spec.tables[block.table].dim;
      const ColumnRange columns = block.columns_of(dim);
      const std::span exact_rows = exact.tables[block.table].as<const double>();
      for (int64_t i = 0; i < block.count; ++i) {
        squares[block.table].add(
            block.weights.subspan(i * columns.count, columns.count),
            exact_rows.subspan(block.row(i) * dim + columns.first, columns.count));
      }
      return Status();
    }));
    if (communicator.rank() == 0) {
      add_layers(exact, rank, std::span(squares).subspan(run.spec.tables.size()));
    }
    return {};
  });
}

}  // namespace

double Float64Distance::ratio() const {
  const double floor = std::ldexp(1.0, -24) / std::sqrt(double(std::max<int64_t>(elements, 1)));
  return configured / std::max(plain, floor);
}

Result<Float64Comparison> float64_distances(const RunOptions& options, const RunOptions& configured,
                                            Files& files) {
  RECMILL_ASSIGN_OR_RETURN(ResolvedRun run, resolve_run(configured, files));
  RECMILL_RETURN_IF_ERROR(open_hot_folder(run, files));
  RECMILL_ASSIGN_OR_RETURN(ResolvedRun plain, resolve_run(options, files));
  plain.hot_folder = run.hot_folder;
  plain.ranks = 1;
  plain.threads = 1;
  ThreadsWorld world;
  RECMILL_RETURN_IF_ERROR(choose_hot_rows(run, {}, world, files, Progress::Style::silent));
  RECMILL_RETURN_IF_ERROR(place_tables(run, files));
  RECMILL_RETURN_IF_ERROR(fit_columns(run, Way::engine, {}, world, files, Progress::Style::silent));
  RECMILL_RETURN_IF_ERROR(
      fit_columns(plain, Way::plain, {}, world, files, Progress::Style::silent));
  RECMILL_RETURN_IF_ERROR(check_memory(
      run, with_all_rows(memory_ledger(run), run.spec, "rows in float64", sizeof(double)), world));
  RECMILL_ASSIGN_OR_RETURN(const Float64Outcome exact, train_in_float64(plain, files));
  std::vector<Squares> by_plain = blank(run, exact), by_run = blank(run, exact);
  RECMILL_RETURN_IF_ERROR(measure(plain, Way::plain, files, exact, by_plain));
  RECMILL_RETURN_IF_ERROR(measure(run, Way::engine, files, exact, by_run));
  Float64Comparison comparison{exact.iterations, {}};
  for (size_t i = 0; i < by_run.size(); ++i) {
    if (by_run[i].elements == 0) continue;  // running statistics
    const size_t tables = run.spec.tables.size();
    comparison.distances.push_back(
        {i < tables ? "table " + run.spec.tables[i].name : "layer " + exact.layers[i - tables].name,
         by_run[i].elements, by_run[i].distance(), by_plain[i].distance()});
  }
  return comparison;
}

Result<Json> verify_against_float64(const RunOptions& options, int64_t iterations, Files& files,
                                    const std::function<void(const std::string&)>& say) {
  RECMILL_RETURN_IF_ERROR(check_gpu(options));
  const HotsetOptions& hotset = options.hotset;
  if (hotset.order == BatchOrder::hot_cold && hotset.rate == 0 && hotset.replay.empty())
    return Status::BadRequest(
        "hotset.replay: losses of the float64 run would make other schedules; name the "
        "schedule.jsonl of a run, or fix hotset.rate");
  if (layers_are_on_gpu(options) && options.device == DeviceKind::cuda)
    RECMILL_RETURN_IF_ERROR(model::open_layers_on_cuda().at("device = \"cuda\""));
  RunOptions limited = options;
  limited.train.epochs = 1;
  const int64_t own = options.train.iterations;
  limited.train.iterations = own > 0 ? std::min(own, iterations) : iterations;
  RECMILL_ASSIGN_OR_RETURN(const auto comparison, float64_distances(limited, limited, files));
  const auto right = [](const Float64Distance& d) { return d.ratio() <= kMostOverPlain; };
  Json list = Json::array();
  const Float64Distance* worst = nullptr;
  for (const Float64Distance& d : comparison.distances) {
    if (!right(d)) {
      say(fmt::format("{}: {:.3g} from float64, plain {:.3g}, ratio {:.3g}", d.name, d.configured,
                      d.plain, d.ratio()));
    }
    list.push_back(
        {{"name", d.name}, {"configured", d.configured}, {"plain", d.plain}, {"ratio", d.ratio()}});
    // Written so that a distance that is no number is the worst.
    if (worst == nullptr || !(d.ratio() <= worst->ratio())) worst = &d;
  }
  if (worst != nullptr && !right(*worst)) {
    return Status::Failed(
        fmt::format("{}: is {:.3g} from the float64 run, {:.3g} times as far as the plain run; at "
                    "most {} times are right",
                    worst->name, worst->configured, worst->ratio(), kMostOverPlain));
  }
  Json result;
  result["verified"] = true;
  result["iterations"] = comparison.iterations;
  result["worst_ratio"] = worst == nullptr ? 0.0 : worst->ratio();
  result["distances"] = std::move(list);
  return result;
}

}  // namespace recmill::train
