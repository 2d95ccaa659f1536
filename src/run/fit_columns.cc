// SPDX-License-Identifier: Apache-2.0
#include "run/fit_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/json/json.h"
#include "preprocess/run/column_statistics.h"
#include "reader/open_reader.h"
#include "run/handshake.h"

namespace recmill::train {
namespace {

using preprocess::FeatureGraph;
using preprocess::StatisticsPass;

constexpr int64_t kRowsAtOnce = 8192;

Status add_all_rows(const ResolvedRun& run, Way way, Files& files, ThreadPool& pool,
                    Progress& progress, const std::function<Status()>& each_batch,
                    StatisticsPass& pass) {
  DataOptions data = run.options.data;
  data.shuffle.kind = ShuffleKind::none;
  RECMILL_ASSIGN_OR_RETURN(
      const auto rows,
      reader::open_reader(
          data, Subset::train, static_cast<uint64_t>(run.options.train.seed), pool, files,
          way == Way::plain ? reader::ParserKind::plain : reader::ParserKind::fast));
  RECMILL_ASSIGN_OR_RETURN(const int64_t count, rows->rows());
  ColumnBatch batch;
  for (int64_t row = 0; row < count; row += batch.samples) {
    RECMILL_RETURN_IF_ERROR(rows->read(0, row, std::min(kRowsAtOnce, count - row), batch));
    if (batch.samples == 0)
      return Status::Failed("the data ended before its last row: it changed while it was read");
    pass.add(batch, pool);
    progress.show(row + batch.samples, "");
    RECMILL_RETURN_IF_ERROR(each_batch());
  }
  return {};
}

Result<FeatureGraph> fitted_graph(const ResolvedRun& run, Way way, Files& files,
                                  Progress::Style style,
                                  const std::function<Status()>& each_batch) {
  const auto pool = make_pool(run.threads);
  const Stopwatch watch;
  Progress progress(style, "finding means and deviations", "rows", 0);
  FeatureGraph graph = run.graph;
  while (lacks_statistics(graph)) {
    RECMILL_ASSIGN_OR_RETURN(
        auto pass, StatisticsPass::begin(graph, way == Way::plain ? StatisticsPass::Way::plain
                                                                  : StatisticsPass::Way::fast));
    RECMILL_RETURN_IF_ERROR(add_all_rows(run, way, files, *pool, progress, each_batch, pass));
    RECMILL_RETURN_IF_ERROR(pass.finish(graph));
  }
  progress.say(fmt::format("standardize: means and deviations of the training rows took {}",
                           format_duration(watch.seconds())));
  return graph;
}

/// The others wait for each of rank 0's batches, since one call has a limit.
Result<FeatureGraph> fitted_by_first_rank(const ResolvedRun& run, Way way, Files& files,
                                          Progress::Style style, Communicator& communicator) {
  std::byte going_on{1};
  const auto tell = [&] { return communicator.broadcast(std::span(&going_on, 1), 0); };
  if (communicator.rank() == 0) {
    auto graph = fitted_graph(run, way, files, style, tell);
    if (!graph.ok()) return graph;
    going_on = std::byte{0};
    RECMILL_RETURN_IF_ERROR(tell());
    return graph;
  }
  while (going_on != std::byte{0}) RECMILL_RETURN_IF_ERROR(tell());
  return FeatureGraph();
}

/// Rank 0's text, to all.
Status broadcast_text(Communicator& communicator, std::string& text) {
  int64_t size = std::ssize(text);
  RECMILL_RETURN_IF_ERROR(communicator.broadcast(std::as_writable_bytes(std::span(&size, 1)), 0));
  text.resize(size);
  return communicator.broadcast(std::as_writable_bytes(std::span(text)), 0);
}

}  // namespace

Status fit_columns(ResolvedRun& run, Way way, const JobIdentity& identity, World& world,
                   Files& files, Progress::Style style) {
  if (!lacks_statistics(run.graph)) return {};
  std::mutex mutex;
  FeatureGraph fitted;
  RECMILL_RETURN_IF_ERROR(world.run(run.ranks, [&](Communicator& communicator) -> Status {
    RECMILL_RETURN_IF_ERROR(shake_hands(run, identity, communicator, files));
    RECMILL_ASSIGN_OR_RETURN(const FeatureGraph found,
                             fitted_by_first_rank(run, way, files, style, communicator));
    std::string text = preprocess::to_json(found).dump();
    RECMILL_RETURN_IF_ERROR(broadcast_text(communicator, text));
    RECMILL_ASSIGN_OR_RETURN(
        auto graph, preprocess::feature_graph_from_json(Json::parse(text, nullptr, false)));
    const std::lock_guard lock(mutex);
    fitted = std::move(graph);
    return {};
  }));
  run.graph = std::move(fitted);
  return {};
}

void take_fitted(const checkpoint::Reader& checkpoint, ResolvedRun& run) {
  const Json& properties = checkpoint.properties();
  if (!properties.is_object()) return;
  const auto from = preprocess::feature_graph_from_json(properties.value("graph", Json()));
  if (from.ok()) take_statistics(*from, run.graph);
}

}  // namespace recmill::train
