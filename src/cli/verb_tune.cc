// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>

#include "base/json/json.h"
#include "base/log.h"
#include "cli/pages/tuning_page.h"
#include "cli/verb.h"
#include "comm/threads.h"
#include "config/run_config.h"
#include "device/gpu/gpu_properties.h"
#include "program/build_info.h"
#include "run/gpu/gpu_kernels.h"
#include "run/hotset/choose_hot_rows.h"
#include "run/schedules.h"
#include "tuning/gpu_tuning.h"
#include "tuning/tuning.h"

namespace recmill::cli {
namespace {

constexpr int64_t kGpuRounds = 5;  // where nobody says

struct TuneArguments {
  ConfigArguments config;
  train::TuningRequest request;
  std::string replay, html;
  std::string device, architecture = "sm_90";
  bool overwrite = false, json = false, quiet = false, compile_only = false;
};

/// "90", "90s", "5m" or "1h" in seconds.
Result<double> seconds_of(const std::string& text) {
  const auto bad = Status::BadRequest("--budget " + text + ": must be a time, as 90s, 5m or 1h");
  if (text.empty()) return 0.0;
  double unit = 1.0;
  std::string number = text;
  if (const char last = text.back(); last == 's' || last == 'm' || last == 'h') {
    unit = last == 's' ? 1.0 : last == 'm' ? 60.0 : 3600.0;
    number.pop_back();
  }
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  if (number.empty() || *end != '\0' || !(value > 0.0) || value > 1e6) return bad;
  return value * unit;
}

/// Options that would not be looked at: "--rounds: does not go with ...".
Status refuse_options(const CLI::App& verb, std::initializer_list<const char*> options,
                      const std::string& why) {
  for (const char* option : options)
    if (verb.count(option) > 0) return Status::BadRequest(std::string(option) + ": " + why);
  return {};
}

/// Chooses again from recorded times; touches no clock.
Status replay_times(const TuneArguments& arguments) {
  RECMILL_ASSIGN_OR_RETURN(const std::string text, read_text(posix_files(), arguments.replay));
  RECMILL_ASSIGN_OR_RETURN(auto record, kernels::tune::parse_record(text, arguments.replay));
  RECMILL_ASSIGN_OR_RETURN(const auto again, train::replay(std::move(record)));
  RECMILL_ASSIGN_OR_RETURN(const std::string bytes, kernels::tune::record_text(again));
  if (bytes != text) return Status::Failed(arguments.replay + ": its times lead to another record");
  print_result(train::summary_of(again), arguments.json);
  return {};
}

/// Where the GPU's memory has hot rows, which they are.
Status choose_hot_rows(train::ResolvedRun& run, const TuneArguments& arguments) {
  ThreadsWorld world;
  return train::choose_hot_rows(run, {}, world, posix_files(), progress_style(arguments.quiet));
}

/// The record, measured now, or the one that is there where only its page is asked for.
Result<kernels::tune::TuningRecord> tuned_record(TuneArguments& arguments,
                                                 const config::RunConfig& config,
                                                 const CLI::App& verb) {
  const std::string path = train::tuning_record_path(config.options);
  const bool replaces = arguments.overwrite || arguments.request.if_drifted;
  const bool shows = !arguments.html.empty() && !replaces && posix_files().exists(path);
  if (!shows) RECMILL_RETURN_IF_ERROR(refuse_existing(path, replaces));
  if (shows)
    RECMILL_RETURN_IF_ERROR(refuse_options(verb, {"--budget", "--rounds", "--seed"},
                                           "has no effect on the record that is there, " + path +
                                               ", whose page is made; --overwrite tunes again"));
  RECMILL_RETURN_IF_ERROR(refuse_unwritable("--html", arguments.html, /*overwrite=*/true));
  if (!arguments.html.empty())
    RECMILL_RETURN_IF_ERROR(AtomicFile::create(posix_files(), arguments.html).status());
  auto run = train::resolve_run(config.options, posix_files());
  if (!run.ok()) return config.locate(run.status());
  Result<kernels::tune::TuningRecord> record = Status::Failed("");
  if (shows) {
    record = train::read_tuning_record(path, posix_files());
    if (record.ok() && record->of.model != kernels::tune::model_digest(run->spec))
      return Status::Failed(path + ": it was tuned for other tables and features");
  } else {
    arguments.request.commit = program::build_commit();
    arguments.request.progress = progress_style(arguments.quiet);
    arguments.request.interrupted = &watch_interrupts();
    RECMILL_RETURN_IF_ERROR(config.locate(choose_hot_rows(*run, arguments)));
    record = config.options.device == DeviceKind::cpu
                 ? train::tune(*run, arguments.request, posix_files())
                 : train::tune_for_gpu(*run, arguments.request, posix_files());
  }
  if (!record.ok()) return config.locate(record.status());
  if (!arguments.html.empty())
    RECMILL_RETURN_IF_ERROR(
        write_atomically(posix_files(), arguments.html, tuning_page(*record, run->spec)));
  return record;
}

/// What training and tuning on a GPU would load, compiled where no GPU need be.
Status compile_for_gpus(const TuneArguments& arguments) {
  if (arguments.config.path.empty())
    return Status::BadRequest("tune: name a configuration or a workload");
  RECMILL_ASSIGN_OR_RETURN(const config::RunConfig config,
                           config::load_run_config(arguments.config.path, arguments.config.sets));
  if (config.options.device != DeviceKind::cuda)
    return Status::BadRequest("--compile-only: needs --device cuda");
  auto run = train::resolve_run(config.options, posix_files());
  if (!run.ok()) return config.locate(run.status());
  RECMILL_RETURN_IF_ERROR(config.locate(choose_hot_rows(*run, arguments)));
  train::GpuKernelsRequest request;
  request.architecture = arguments.architecture;
  request.seed = static_cast<uint64_t>(arguments.request.seed);
  request.progress = progress_style(arguments.quiet);
  request.interrupted = &watch_interrupts();
  RECMILL_ASSIGN_OR_RETURN(const auto report,
                           train::compile_gpu_kernels(*run, request, posix_files()));
  print_result(train::summary_of(report), arguments.json);
  return {};
}

/// Refuses what would not be looked at.
Status check_compile_only(const CLI::App& verb) {
  if (verb.count("--compile-only") == 0)
    return verb.count("--arch") == 0 ? Status{}
                                     : Status::BadRequest("--arch: needs --compile-only");
  return refuse_options(
      verb, {"--budget", "--rounds", "--html", "--replay", "--if-drifted", "--overwrite"},
      "does not go with --compile-only, which measures nothing");
}
Status check_replay(const CLI::App& verb) {
  return refuse_options(verb,
                        {"config", "--set", "--device", "--seed", "--budget", "--rounds",
                         "--if-drifted", "--overwrite"},
                        "does not go with --replay, which chooses from the times in a record");
}

/// What only one of the tuners has, and the rounds of each.
Status check_request(TuneArguments& arguments, DeviceKind device, bool rounds_given) {
  if (device == DeviceKind::cpu) return {};
  const std::string key = "device = \"" + std::string(name_of(device)) + "\"";
  if (arguments.request.budget_seconds > 0.0)
    return Status::BadRequest("--budget: needs device = \"cpu\", and this is " + key);
  if (arguments.request.if_drifted)
    return Status::BadRequest("--if-drifted: needs device = \"cpu\", and this is " + key);
  if (rounds_given && device == DeviceKind::emulated)
    return Status::BadRequest("--rounds: does not go with " + key +
                              ", which counts, with the same result each time");
  if (!rounds_given) arguments.request.rounds = kGpuRounds;
  return {};
}

Status tune(TuneArguments& arguments, const std::string& budget, const CLI::App& verb) {
  RECMILL_RETURN_IF_ERROR(check_compile_only(verb));
  if (!arguments.device.empty()) arguments.config.sets.push_back("device=" + arguments.device);
  if (arguments.compile_only) return compile_for_gpus(arguments);
  if (!arguments.replay.empty() && !arguments.html.empty())
    return Status::BadRequest("--html: name the configuration of the record, not --replay");
  if (!arguments.replay.empty()) {
    RECMILL_RETURN_IF_ERROR(check_replay(verb));
    return replay_times(arguments);
  }
  if (arguments.config.path.empty())
    return Status::BadRequest("tune: name a configuration or a workload, or --replay RECORD");
  if (arguments.request.rounds < 1) return Status::BadRequest("--rounds: must be 1 or more");
  RECMILL_ASSIGN_OR_RETURN(arguments.request.budget_seconds, seconds_of(budget));
  RECMILL_ASSIGN_OR_RETURN(const config::RunConfig config,
                           config::load_run_config(arguments.config.path, arguments.config.sets));
  RECMILL_RETURN_IF_ERROR(
      check_request(arguments, config.options.device, verb.count("--rounds") > 0));
  RECMILL_ASSIGN_OR_RETURN(const auto record, tuned_record(arguments, config, verb));
  print_result(train::summary_of(record), arguments.json);
  if (!arguments.quiet)
    log_info("the record is " + train::tuning_record_path(config.options) +
             "; [kernels] mode = \"tuned\" uses it");
  return {};
}

}  // namespace

void add_tune(CLI::App& app, Chosen& chosen) {
  auto arguments = std::make_shared<TuneArguments>();
  auto budget = std::make_shared<std::string>();
  CLI::App* verb =
      app.add_subcommand("tune", "find the schedule of every feature's embedding kernels");
  add_config_arguments(*verb, arguments->config);
  verb->get_option("config")->required(false);
  verb->add_option("--budget", *budget, "time limit, such as 90s or 5m; none by default");
  verb->add_option("--rounds", arguments->request.rounds,
                   "how often each candidate is timed; the default on a GPU is 5, on an emulated "
                   "one it is always 1")
      ->capture_default_str();
  verb->add_option("--seed", arguments->request.seed,
                   "seed of the batches on which candidates are timed")
      ->check(within(0))
      ->capture_default_str();
  verb->add_option("--replay", arguments->replay,
                   "choose again from the times in this record, and compare");
  verb->add_option("--html", arguments->html,
                   "write a page with pictures to this file; without --overwrite, of the record "
                   "that is there, if there is one");
  verb->add_flag("--if-drifted", arguments->request.if_drifted,
                 "tune again only what has drifted since the record was made");
  verb->add_option("--device", arguments->device,
                   "cpu, cuda or emulated, in place of the configuration's");
  verb->add_flag(
      "--compile-only", arguments->compile_only,
      "compile all kernels that training and tuning on a GPU take, for train.ranks ranks (0: one), "
      "and print their registers and memory; needs no GPU");
  verb->add_option("--arch", arguments->architecture,
                   "architecture of the GPU to compile for: " + known_architectures())
      ->capture_default_str();
  verb->add_flag("--overwrite", arguments->overwrite, "replace the record that is there");
  verb->add_flag("--json", arguments->json, "print one JSON object");
  verb->add_flag("--quiet", arguments->quiet, "show no progress");
  verb->callback([arguments, budget, verb, &chosen] {
    chosen.action = [arguments, budget, verb] { return tune(*arguments, *budget, *verb); };
  });
}

}  // namespace recmill::cli
