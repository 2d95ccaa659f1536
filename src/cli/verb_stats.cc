// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/json/json.h"
#include "base/log.h"
#include "cli/lookahead_stats.h"
#include "cli/pages/stats_page.h"
#include "cli/verb.h"
#include "cli/versions.h"
#include "config/run_config.h"
#include "preprocess/ops/registry.h"
#include "program/build_info.h"
#include "program/open_world.h"
#include "reader/open_reader.h"
#include "run/options/expand_workload.h"
#include "run/placement/count_accesses.h"
#include "run/resolved_run.h"
#include "stats/access_counts_file.h"
#include "stats/collector.h"
#include "stats/count_shares.h"
#include "stats/merge_counts.h"

namespace recmill::cli {
namespace {

// Rows of a batch, and raw ids of one, as far as the batch before it tells.
constexpr int64_t kFirstBatchRows = 64, kBatchRows = 8192, kBatchIds = 16'000'000;

struct StatsArguments {
  ConfigArguments config;
  int64_t rows = 0, id_limit = 2'000'000;
  std::string counts, html;
  std::vector<std::string> merge;
  LookaheadArguments lookahead;
  bool looks_ahead = false, overwrite = false, json = false, quiet = false;
};

/// For each id column the table of the first feature that reads it, and how an id becomes a row of
/// it; neither where the mapping is not by hash or modulo, so that no two ids share a row.
Result<std::vector<stats::ColumnTable>> tables_of(const train::RunOptions& options,
                                                  const DataSchema& schema) {
  RECMILL_ASSIGN_OR_RETURN(const auto run,
                           train::resolve_run(options, schema, train::machine_cores()));
  std::vector<stats::ColumnTable> tables(schema.ids.size());
  for (const preprocess::Chain& chain : run.graph.features) {
    if (chain.source != preprocess::Source::ids || chain.ops.empty()) continue;
    stats::ColumnTable& table = tables[static_cast<size_t>(chain.column_index)];
    const preprocess::OpSpec& last = chain.ops.back();
    if (table.rows > 0 || (last.op != "sigrid_hash" && last.op != "modulo")) continue;
    RECMILL_ASSIGN_OR_RETURN(std::shared_ptr<const preprocess::Op> op, preprocess::make_op(last));
    table.rows = (*last.parameters)["rows"].get<int64_t>();
    table.row_of = [op](uint64_t id) {
      preprocess::IdCounts counts;
      return static_cast<int64_t>(static_cast<const preprocess::IdOp&>(*op).plain(id, counts));
    };
  }
  return tables;
}

Result<FeatureStats> measure(const config::RunConfig& config, const StatsArguments& arguments) {
  RECMILL_ASSIGN_OR_RETURN(const train::RunOptions options, train::expand_workload(config.options));
  DataOptions data = options.data;
  data.shuffle.kind = ShuffleKind::none;  // the figures do not depend on the order
  ThreadPool pool(train::machine_cores());
  RECMILL_ASSIGN_OR_RETURN(
      const auto rows,
      reader::open_reader(data, Subset::train, static_cast<uint64_t>(options.train.seed), pool,
                          posix_files()));
  RECMILL_ASSIGN_OR_RETURN(int64_t count, rows->rows());
  if (arguments.rows > 0) count = std::min(count, arguments.rows);
  train::Progress progress(progress_style(arguments.quiet), "counting", "rows", count);
  stats::Collector collector(rows->schema(), arguments.id_limit);
  ColumnBatch batch;
  for (int64_t first = 0, next = kFirstBatchRows; first < count;) {
    RECMILL_RETURN_IF_ERROR(rows->read(0, first, std::min(next, count - first), batch));
    if (batch.samples == 0) return Status::Failed("the data ended before its last row");
    collector.add(batch, pool);
    first += batch.samples;
    progress.show(first, "");
    int64_t ids = 0;
    for (const IdColumn& column : batch.ids) ids += static_cast<int64_t>(column.ids.size());
    next = std::clamp<int64_t>(kBatchIds / (ids / batch.samples + 1), 1, kBatchRows);
  }
  const auto tables = tables_of(options, rows->schema());
  if (tables.ok()) return collector.finish(*tables);
  log_warning("no collisions are counted: " + config.locate(tables.status()).message());
  return collector.finish();
}

bool is_hex(const DataOptions& data, const std::string& column) {
  if (data.format == DataFormat::criteo_tsv) return true;
  const auto found = std::ranges::find(data.columns, column, &ColumnSpec::name);
  return found != data.columns.end() && found->id_text == IdText::hex;
}

Status print_stats(const StatsArguments& arguments) {
  RECMILL_ASSIGN_OR_RETURN(const config::RunConfig config,
                           config::load_run_config(arguments.config.path, arguments.config.sets));
  const auto measured = measure(config, arguments);
  if (!measured.ok()) return config.locate(measured.status());
  if (!arguments.html.empty())
    RECMILL_RETURN_IF_ERROR(
        write_atomically(posix_files(), arguments.html,
                         stats_page(config.options.name, *measured, [&](const std::string& column) {
                           return is_hex(config.options.data, column);
                         })));
  if (arguments.json) {
    print_result(to_json(*measured), true);
  } else {
    std::fputs(stats::table_of(*measured).c_str(), stdout);
  }
  return {};
}

Status write_and_print(const AccessCounts& counts, const StatsArguments& arguments,
                       ThreadPool& pool) {
  RECMILL_RETURN_IF_ERROR(stats::write_counts(counts, arguments.counts, posix_files(), pool));
  const std::vector<stats::TableShares> shares = stats::shares_of(counts);
  if (arguments.json) {
    print_result({{"counts", arguments.counts},
                  {"model", counts.model},
                  {"samples", counts.samples},
                  {"tables", to_json(shares)}},
                 true);
    return {};
  }
  std::fputs(stats::table_of(shares).c_str(), stdout);
  if (!arguments.quiet) log_info("the counts are in " + arguments.counts);
  return {};
}

/// Rows of the run's tables, counted by its ranks.
Status count_rows(const StatsArguments& arguments, Chosen& chosen) {
  chosen.on_ranks = true;
  RECMILL_ASSIGN_OR_RETURN(const config::RunConfig config,
                           config::load_run_config(arguments.config.path, arguments.config.sets));
  auto world = program::open_world(config.options.train);
  if (!world.ok()) return config.locate(world.status());
  chosen.world = *std::move(world);
  const train::JobSetting setting{posix_files(),
                                  *chosen.world,
                                  program::build_commit(),
                                  {versions_text(), config::to_toml(config.options)},
                                  progress_style(arguments.quiet),
                                  nullptr};
  train::CountingRequest request;
  request.rows = arguments.rows;
  const auto counts = train::count_accesses(config.options, request, setting);
  if (!counts.ok()) return config.locate(counts.status());
  if (!counts->has_value()) return {};  // rank 0 has them
  ThreadPool pool(train::machine_cores());
  return write_and_print(**counts, arguments, pool);
}

Status merge_files(const StatsArguments& arguments) {
  ThreadPool pool(train::machine_cores());
  std::vector<AccessCounts> counts;
  for (const std::string& path : arguments.merge) {
    if (!posix_files().exists(path))
      return Status::BadRequest("--merge " + path + ": no such file");
    const std::string model = counts.empty() ? "" : counts[0].model;
    RECMILL_ASSIGN_OR_RETURN(counts.emplace_back(),
                             stats::read_counts(path, model, posix_files(), pool));
  }
  RECMILL_ASSIGN_OR_RETURN(const AccessCounts merged, stats::merge_counts(counts));
  return write_and_print(merged, arguments, pool);
}

Status run_stats(const StatsArguments& arguments, Chosen& chosen) {
  if (arguments.rows < 0) return Status::BadRequest("--rows: must not be negative");
  if (arguments.id_limit < 2) return Status::BadRequest("--id-limit: must be 2 or more");
  if (arguments.looks_ahead &&
      (arguments.rows > 0 || !arguments.counts.empty() || !arguments.merge.empty()))
    return Status::BadRequest("--lookahead: does not go with --rows, --counts and --merge");
  RECMILL_RETURN_IF_ERROR(refuse_unwritable("--counts", arguments.counts, arguments.overwrite));
  RECMILL_RETURN_IF_ERROR(refuse_unwritable("--html", arguments.html, arguments.overwrite));
  if (!arguments.html.empty() && (!arguments.counts.empty() || !arguments.merge.empty()))
    return Status::BadRequest(
        "--html: does not go with --counts and --merge; its page is of the columns");
  if (arguments.merge.empty() && arguments.config.path.empty())
    return Status::BadRequest("stats: name a configuration or a workload, or --merge FILES");
  if (arguments.looks_ahead) {
    LookaheadArguments lookahead = arguments.lookahead;
    lookahead.html = arguments.html;
    return print_lookahead(arguments.config, lookahead, arguments.json, arguments.quiet);
  }
  if (arguments.merge.empty())
    return arguments.counts.empty() ? print_stats(arguments) : count_rows(arguments, chosen);
  if (!arguments.config.path.empty() || arguments.rows > 0)
    return Status::BadRequest("--merge: takes files alone, no configuration and no --rows");
  if (arguments.counts.empty())
    return Status::BadRequest("--merge: name the file that is to be written by --counts FILE");
  return merge_files(arguments);
}

/// What a cache that knows the next batches would move.
void add_lookahead(CLI::App& verb, LookaheadArguments& lookahead, bool& wanted) {
  CLI::Option* const option = verb.add_flag(
      "--lookahead", wanted,
      "in place of the columns, count the rows that a cache which knows the next batches would "
      "fetch in an epoch, beside other caches and none");
  verb.add_option("--batches", lookahead.batches,
                  "numbers of batches that it knows beyond the current one")
      ->delimiter(',')
      ->capture_default_str()
      ->needs(option);
  verb.add_option("--prefetch", lookahead.prefetch,
                  "numbers of batches whose rows are fetched ahead of their use")
      ->delimiter(',')
      ->capture_default_str()
      ->needs(option);
  verb.add_option("--slots", lookahead.slots,
                  "numbers of rows that fit at each rank; 0: as many as it takes")
      ->delimiter(',')
      ->capture_default_str()
      ->needs(option);
  verb.add_option("--ranks", lookahead.ranks, "ranks that share the samples of each batch")
      ->capture_default_str()
      ->needs(option);
  verb.add_flag(
          "--trace", lookahead.trace,
          "also print each step as one JSON object: rows fetched, their last uses, rows evicted")
      ->needs(option);
}

}  // namespace

void add_stats(CLI::App& app, Chosen& chosen) {
  auto arguments = std::make_shared<StatsArguments>();
  CLI::App* verb = app.add_subcommand(
      "stats", "measure the columns of the training rows: distinct ids, skew, missing values");
  add_config_arguments(*verb, arguments->config);
  verb->get_option("config")->required(false);
  verb->add_option("--rows", arguments->rows, "measure only so many rows, the first ones; 0: all");
  verb->add_option("--id-limit", arguments->id_limit,
                   "distinct ids of a column that are counted exactly; each takes some 60 bytes")
      ->capture_default_str();
  verb->add_option("--counts", arguments->counts,
                   "in place of the columns, count how often training looks up each row of each "
                   "table, and write the counts to this file");
  verb->add_option(
      "--merge", arguments->merge,
      "add up these files of counts, of different data, and write the sum to the file of --counts");
  verb->add_option(
      "--html", arguments->html,
      "write a page to this file: of the columns, how they spread, the label by value; "
      "with --lookahead of what caches would fetch");
  add_lookahead(*verb, arguments->lookahead, arguments->looks_ahead);
  verb->add_flag("--overwrite", arguments->overwrite, "replace a file that is there");
  verb->add_flag("--json", arguments->json, "print one JSON object");
  verb->add_flag("--quiet", arguments->quiet, "show no progress");
  verb->callback([arguments, &chosen] {
    chosen.action = [arguments, &chosen] { return run_stats(*arguments, chosen); };
  });
}

}  // namespace recmill::cli
