// SPDX-License-Identifier: Apache-2.0
// recmill eval, recmill predict
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/verb.h"
#include "cli/versions.h"
#include "config/run_config.h"
#include "program/build_info.h"
#include "program/open_world.h"
#include "reader/writers/column_file.h"
#include "score/scoring.h"

namespace recmill::cli {
namespace {

struct ScoreArguments {
  ConfigArguments config;
  train::ScoringRequest request;
  int64_t batch = 0;
  train::RequestOptions answer;
  std::string key = "row";
  bool latency = false, overwrite = false, json = false, quiet = false;
};

Status score(const ScoreArguments& arguments, Chosen& chosen) {
  chosen.on_ranks = true;
  const std::string& out = arguments.request.predictions;
  if (!out.empty()) RECMILL_RETURN_IF_ERROR(reader::check_column_file(out).at("--out"));
  RECMILL_RETURN_IF_ERROR(refuse_unwritable("--out", out, arguments.overwrite));
  RECMILL_ASSIGN_OR_RETURN(config::RunConfig config,
                           config::load_run_config(arguments.config.path, arguments.config.sets));
  if (arguments.batch > 0) config.options.train.eval_batch_size = arguments.batch;
  auto world = program::open_world(config.options.train);
  if (!world.ok()) return config.locate(world.status());
  chosen.world = *std::move(world);
  // What cannot be written is told before anything is scored.
  if (!out.empty() && chosen.world->has_first_rank())
    RECMILL_RETURN_IF_ERROR(AtomicFile::create(posix_files(), out).status());
  const train::JobSetting setting{posix_files(),
                                  *chosen.world,
                                  program::build_commit(),
                                  {versions_text(), config::to_toml(config.options)},
                                  progress_style(arguments.quiet),
                                  nullptr,
                                  "",
                                  config::options_of_text};
  train::ScoringRequest request = arguments.request;
  if (arguments.key != "row") request.key = arguments.key;
  if (arguments.latency) request.latency = arguments.answer;
  const auto metrics = run_scoring(config.options, request, setting);
  if (!metrics.ok()) return config.locate(metrics.status());
  if (!chosen.world->has_first_rank()) return {};
  print_result(*metrics, arguments.json);
  return {};
}

std::shared_ptr<ScoreArguments> add_scoring(CLI::App& verb, Chosen& chosen) {
  auto arguments = std::make_shared<ScoreArguments>();
  add_config_arguments(verb, arguments->config);
  verb.add_option("--checkpoint", arguments->request.checkpoint,
                  "checkpoint folder, or best or newest of the run; by default the best where the "
                  "run keeps it (train.checkpoint.keep_best), else the newest");
  verb.add_option("--rows", arguments->request.rows,
                  "score all rows of these files or patterns, relative to the current folder, in "
                  "place of the evaluation rows");
  verb.add_flag("--json", arguments->json, "print the metrics as one JSON object");
  verb.add_flag("--quiet", arguments->quiet, "show no progress");
  verb.callback([arguments, &chosen] {
    chosen.action = [arguments, &chosen] { return score(*arguments, chosen); };
  });
  return arguments;
}

}  // namespace

void add_eval(CLI::App& app, Chosen& chosen) {
  add_scoring(*app.add_subcommand("eval", "evaluate a run's checkpoint"), chosen);
}

void add_predict(CLI::App& app, Chosen& chosen) {
  CLI::App* verb = app.add_subcommand("predict", "score rows and write the predictions");
  const auto arguments = add_scoring(*verb, chosen);
  verb->add_option("--out", arguments->request.predictions,
                   "file of the predictions: .parquet, .arrow, .feather, or .csv (also .csv.gz and "
                   ".csv.zst)")
      ->required();
  verb->add_option("--key", arguments->key,
                   "what identifies a row in the file: row (its file and its number there, from 0; "
                   "the default), or the name of a column, whose value is written");
  verb->add_flag("--overwrite", arguments->overwrite, "replace a file that is there");
  auto* const latency =
      verb->add_flag("--latency", arguments->latency,
                     "treat rows as requests, and report percentiles of the time from ids to "
                     "logits; reading and preprocessing come before, and are reported apart");
  verb->add_option("--batch", arguments->batch,
                   "samples of a request, over all ranks; by default train.eval_batch_size")
      ->needs(latency)
      ->check(within(1, 1 << 24));  // as train.eval_batch_size, whose place it takes
  verb->add_option("--warmup", arguments->answer.warmup,
                   "first requests that are not counted; by default a tenth of them")
      ->needs(latency)
      ->check(within(0));
  verb->add_option("--rate", arguments->answer.rate,
                   "requests a second, each timed from when it is due; by default one follows each "
                   "answer")
      ->needs(latency)
      ->check(within(1e-3));
  verb->add_option("--concurrency", arguments->answer.concurrency,
                   "requests in flight at once, at most; 1 by default. More need one rank and "
                   "device = \"cpu\"")
      ->needs(latency)
      ->check(within(1, 1024));
}

}  // namespace recmill::cli
