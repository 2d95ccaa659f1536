// SPDX-License-Identifier: Apache-2.0
// recmill synth, recmill convert
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/json/json.h"
#include "base/log.h"
#include "cli/verb.h"
#include "config/option_binder.h"
#include "config/run_config.h"
#include "reader/open_reader.h"
#include "reader/synthetic/generate.h"
#include "reader/writers/convert.h"
#include "run/hotset/write_hot_folder.h"
#include "run/memory.h"
#include "run/options/expand_workload.h"
#include "run/resolved_run.h"
#include "step/metrics/metrics.h"

namespace recmill::cli {
namespace {

struct SynthArguments {
  std::string config;
  std::vector<std::string> sets;
  std::string out;
  int64_t rows = 0, eval_rows = 0;
  bool overwrite = false, json = false, quiet = false;
};

Result<reader::GenerateOptions> synth_options(const SynthArguments& arguments) {
  config::ConfigNode root;
  if (!arguments.config.empty()) {
    const auto text = read_text(posix_files(), arguments.config);
    if (!text.ok()) return Status::BadRequest(text.status().message());
    RECMILL_ASSIGN_OR_RETURN(root, config::parse_toml(*text, arguments.config));
  }
  for (const std::string& set : arguments.sets)
    RECMILL_RETURN_IF_ERROR(config::apply_set(root, set));
  reader::GenerateOptions options;
  RECMILL_RETURN_IF_ERROR(config::bind_options(root, options));
  if (arguments.rows < 0) return Status::BadRequest("--rows: must not be negative");
  if (arguments.eval_rows < 0) return Status::BadRequest("--eval-rows: must not be negative");
  if (!arguments.out.empty()) options.folder = arguments.out;
  if (arguments.rows > 0) options.data.rows = arguments.rows;
  if (arguments.eval_rows > 0) options.data.eval_rows = arguments.eval_rows;
  options.overwrite = options.overwrite || arguments.overwrite;
  return options;
}

Status synthesize(const SynthArguments& arguments) {
  RECMILL_ASSIGN_OR_RETURN(const auto options, synth_options(arguments));
  ThreadPool pool(train::machine_cores());
  train::Progress progress(progress_style(arguments.quiet), "writing", "rows",
                           options.data.rows + options.data.eval_rows);
  const auto auc = [](std::span<const double> scores, std::span<const float> labels) {
    return train::metrics::auc({scores, labels, {}, {}}).value_or(0.5);
  };
  RECMILL_ASSIGN_OR_RETURN(const auto figures,
                           generate(options, pool, posix_files(), auc, [&](int64_t rows, int64_t) {
                             progress.show(rows, "");
                             return true;
                           }));
  Json result;
  result["folder"] = options.folder;
  const Json known = to_json(figures);
  for (const auto& [key, value] : known.items()) {
    if (value.is_number()) result[key] = value;
  }
  print_result(result, arguments.json);
  return {};
}

struct ConvertArguments {
  ConfigArguments config;
  std::string out, hotcold, subset = "train";
  bool overwrite = false, json = false, quiet = false;
};

/// Hot and cold inputs, each in a file.
Status put_apart(const ConvertArguments& arguments) {
  RECMILL_ASSIGN_OR_RETURN(const config::RunConfig config,
                           config::load_run_config(arguments.config.path, arguments.config.sets));
  train::RunOptions options = config.options;
  // What is written is what a run takes that names the folder.
  options.hotset.order = train::BatchOrder::hot_cold;
  options.hotset.folder = arguments.hotcold;
  const auto run = train::resolve_run(options, posix_files());
  if (!run.ok()) return config.locate(run.status());
  const auto written = train::write_hot_folder(*run, arguments.hotcold, arguments.overwrite,
                                               train::available_bytes() / run->ranks, posix_files(),
                                               progress_style(arguments.quiet));
  if (!written.ok()) return config.locate(written.status());
  const int64_t hot = written->hot_inputs, cold = written->cold_inputs;
  if (written->reused && !arguments.quiet)
    log_info(arguments.hotcold + ": is there already, of the same data, tables and [hotset]");
  if (cold == 0) {
    log_warning("all inputs are hot: the order of batches saves nothing");
  } else if (std::min(hot, cold) < run->options.train.batch_size) {
    log_warning(fmt::format("only {} inputs are {}: less than a batch", std::min(hot, cold),
                            hot < cold ? "hot" : "cold"));
  }
  print_result({{"folder", arguments.hotcold},
                {"hot_inputs", hot},
                {"cold_inputs", cold},
                {"hot_rows", written->hot_rows},
                {"cutoff", written->cutoff},
                {"reused", written->reused}},
               arguments.json);
  return {};
}

Status convert_rows(const ConvertArguments& arguments) {
  if (arguments.out.empty() == arguments.hotcold.empty())
    return Status::BadRequest("convert: name a file by --out, or a folder by --hotcold");
  if (!arguments.hotcold.empty()) return put_apart(arguments);
  RECMILL_RETURN_IF_ERROR(refuse_unwritable("--out", arguments.out, arguments.overwrite));
  RECMILL_ASSIGN_OR_RETURN(const config::RunConfig config,
                           config::load_run_config(arguments.config.path, arguments.config.sets));
  Subset subset = Subset::all;
  bool known = false;
  for (const auto& [value, name] : EnumNames<Subset>::names) {
    if (name != arguments.subset) continue;
    subset = value;
    known = true;
  }
  if (!known) return Status::BadRequest("--subset: must be train, eval or all");
  const auto options = train::expand_workload(config.options);
  if (!options.ok()) return config.locate(options.status());
  ThreadPool pool(train::machine_cores());
  auto rows = reader::open_reader(options->data, subset, static_cast<uint64_t>(options->train.seed),
                                  pool, posix_files());
  if (!rows.ok()) return config.locate(rows.status());
  train::Progress progress(progress_style(arguments.quiet), "converting", "rows", 0);
  const auto count =
      reader::convert(**rows, {}, arguments.out, posix_files(), [&](int64_t done, int64_t) {
        progress.show(done, "");
        return true;
      });
  if (!count.ok()) return config.locate(count.status());
  Json result{{"file", arguments.out}, {"rows", *count}};
  const reader::ReaderCounts counts = (*rows)->counts();
  result["bad_rows"] = counts.bad_rows;
  if (options->data.format == DataFormat::behavior_log) {
    result["passed_over_events"] = counts.passed_over;
  }
  print_result(result, arguments.json);
  return {};
}

}  // namespace

void add_synth(CLI::App& app, Chosen& chosen) {
  auto arguments = std::make_shared<SynthArguments>();
  CLI::App* verb = app.add_subcommand("synth", "make a data set with a planted click model");
  verb->add_option("config", arguments->config,
                   "TOML file of options; default: the shape of Criteo's logs");
  verb->add_option("--set", arguments->sets,
                   "replace a key of the file, as key=value; repeat --set for others")
      ->allow_extra_args(false);
  verb->add_option("--out", arguments->out, "folder to write");
  verb->add_option("--rows", arguments->rows, "training rows; 0: as the configuration says");
  verb->add_option("--eval-rows", arguments->eval_rows,
                   "held-out rows; 0: as the configuration says");
  verb->add_flag("--overwrite", arguments->overwrite, "replace a data set that is there");
  verb->add_flag("--json", arguments->json, "print the figures as one JSON object");
  verb->add_flag("--quiet", arguments->quiet, "show no progress");
  verb->callback(
      [arguments, &chosen] { chosen.action = [arguments] { return synthesize(*arguments); }; });
}

void add_convert(CLI::App& app, Chosen& chosen) {
  auto arguments = std::make_shared<ConvertArguments>();
  CLI::App* verb = app.add_subcommand("convert", "write a configuration's rows in another format");
  add_config_arguments(*verb, arguments->config);
  verb->add_option("--out", arguments->out,
                   "file to write; its ending chooses the format: .tsv or .csv (also with .gz or "
                   ".zst), .parquet or .arrow");
  verb->add_option(
      "--hotcold", arguments->hotcold,
      "in place of a file, a folder with the hot and the cold inputs apart, as [hotset] "
      "says, for hotset.order = \"hot_cold\"");
  verb->add_option("--subset", arguments->subset, "rows to write: train, eval or all");
  verb->add_flag("--overwrite", arguments->overwrite, "replace a file or folder that is there");
  verb->add_flag("--json", arguments->json, "print one JSON object");
  verb->add_flag("--quiet", arguments->quiet, "show no progress");
  verb->callback(
      [arguments, &chosen] { chosen.action = [arguments] { return convert_rows(*arguments); }; });
}

}  // namespace recmill::cli
