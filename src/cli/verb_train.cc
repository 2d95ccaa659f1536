// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <numeric>
#include <string>

#include "base/json/json.h"
#include "base/log.h"
#include "base/saturating.h"
#include "cli/launched.h"
#include "cli/pages/profile_page.h"
#include "cli/pages/run_page.h"
#include "cli/verb.h"
#include "cli/versions.h"
#include "comm/threads.h"
#include "config/run_config.h"
#include "program/build_info.h"
#include "program/open_world.h"
#include "run/folder/run_folder.h"
#include "run/gpu/gpu_memory.h"
#include "run/gpu/gpu_run.h"
#include "run/gpu/place_gpu_rows.h"
#include "run/hotset/choose_hot_rows.h"
#include "run/memory.h"
#include "run/placement/run_placement.h"
#include "train/job.h"

namespace recmill::cli {
namespace {

struct TrainArguments {
  ConfigArguments config;
  bool resume = false, overwrite = false, dry_run = false, json = false, quiet = false;
  std::string export_plain, html, order;
  bool profile = false;
};

/// What ranks need of their GPUs, and whether these have that, if all ranks are on this machine and
/// its GPUs as the first; of GPUs that are not there only the former.
Status add_gpus(const train::ResolvedRun& run, Json& result, Status& enough) {
  const auto gpu = train::open_gpu(run.options);
  if (!gpu.ok() && run.options.gpu.rows == train::GpuRowsIn::fit) return gpu.status();
  const int64_t usable =
      gpu.ok() ? train::usable_bytes(run.options.gpu, (*gpu)->driver().free_bytes()) : 0;
  const auto counted = train::gpus_of_machine(run.options.device);
  const int gpus = counted.ok() ? *counted : 0;
  train::RankOnHost place;
  place.ranks.resize(run.ranks);
  std::iota(place.ranks.begin(), place.ranks.end(), 0);
  for (; place.number < run.ranks; ++place.number) {
    const auto ranks = train::ranks_of_same_gpu(place, gpus);
    if (ranks.front() != place.number) continue;  // of a GPU before
    const auto plans = train::plan_gpu(run, usable, ranks);
    for (const train::GpuPlan& plan : plans) {
      for (const MemoryItem& item : plan.need.device.items)
        result[fmt::format("gpu {}: {}", item.device, item.what)] = item.bytes;
      result[fmt::format("total bytes of gpu {}", plan.rank)] = plan.need.device.total(plan.rank);
    }
    if (gpu.ok() && enough.ok()) enough = train::check_gpu_memory(run, plans, usable);
  }
  return {};
}

std::string with_commas(int64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3) text.insert(at, ",");
  return text;
}

using TablesByName = std::map<std::string, const TableSpec*>;

/// An item of the ledger, "rank 0: table C3: weights", as that of any table of its size: what
/// comes before their number, and behind it. Of another item the whole name, and nothing.
std::pair<std::string, std::string> item_of_size(const std::string& item,
                                                 const TablesByName& tables) {
  constexpr std::string_view kTable = ": table ";
  const size_t begin = item.find(kTable);
  if (begin == std::string::npos) return {item, ""};
  const size_t name = begin + kTable.size();
  for (size_t end = item.find(": ", name); end != std::string::npos;
       end = item.find(": ", end + 1)) {
    const auto table = tables.find(item.substr(name, end - name));
    if (table == tables.end()) continue;
    const TableSpec& spec = *table->second;
    return {item.substr(0, begin + 2), fmt::format(" tables of {} x {}{}", with_commas(spec.rows),
                                                   spec.dim, item.substr(end))};
  }
  return {item, ""};
}

/// The ledger for people: tables of one size on one device have a line, with what all of them take.
Json with_equal_tables_together(const Json& ledger, const std::vector<TableSpec>& specs) {
  TablesByName tables;
  for (const TableSpec& spec : specs) tables[spec.name] = &spec;
  std::map<std::pair<std::string, std::string>, int> counts;
  for (const auto& [item, bytes] : ledger.items()) ++counts[item_of_size(item, tables)];
  Json together;
  for (const auto& [item, bytes] : ledger.items()) {
    const auto of_size = item_of_size(item, tables);
    const int count = counts[of_size];
    Json& sum =
        together[count == 1 ? item : fmt::format("{}{}{}", of_size.first, count, of_size.second)];
    sum = (sum.is_null() ? 0 : sum.get<int64_t>()) + bytes.get<int64_t>();
  }
  return together;
}

Status print_ledger(const train::RunOptions& options, bool json) {
  RECMILL_ASSIGN_OR_RETURN(auto run, train::resolve_run(options, posix_files()));
  RECMILL_RETURN_IF_ERROR(train::check_judging(run));
  ThreadsWorld world;
  RECMILL_RETURN_IF_ERROR(
      train::choose_hot_rows(run, {}, world, posix_files(), train::Progress::Style::silent));
  RECMILL_RETURN_IF_ERROR(train::place_tables(run, posix_files()));
  const MemoryLedger ledger = train::memory_ledger(run);
  Json result;
  int64_t total = 0;
  for (const MemoryItem& item : ledger.items) {
    result[fmt::format("rank {}: {}", item.device, item.what)] = item.bytes;
    total = saturating_sum({total, item.bytes});
  }
  result["total bytes"] = total;
  Status enough;
  if (options.device != DeviceKind::cpu) RECMILL_RETURN_IF_ERROR(add_gpus(run, result, enough));
  print_result(json ? result : with_equal_tables_together(result, run.spec.tables), json);
  RECMILL_RETURN_IF_ERROR(enough);
  return train::check_memory(run, ledger, world);
}

/// The lines of metrics that the run has written.
Result<std::vector<Json>> metrics_of(const train::RunOptions& options) {
  RECMILL_ASSIGN_OR_RETURN(
      const std::string text,
      read_text(
          posix_files(),
          train::RunFolder(posix_files(), options.train.runs + "/" + options.name).metrics()));
  std::vector<Json> lines;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    const Json line = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                  text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (line.is_object()) lines.push_back(line);
  }
  return lines;
}

// The profile is a table for people, and a page where one is wanted.
Status print_summary(Json summary, const TrainArguments& arguments,
                     const train::RunOptions& options) {
  if (!arguments.html.empty()) {
    RunPage page{options.name, summary, {}, config::to_toml(options)};
    RECMILL_ASSIGN_OR_RETURN(page.metrics, metrics_of(options));
    RECMILL_RETURN_IF_ERROR(write_atomically(posix_files(), arguments.html, run_page(page)));
  }
  if (arguments.json || !summary.contains("profile")) {
    print_result(summary, arguments.json);
    return {};
  }
  const std::string profile = profile_text(summary["profile"]);
  summary.erase("profile");
  print_result(summary, /*json=*/false);
  std::fputs(profile.c_str(), stdout);
  return {};
}

Status train_model(const TrainArguments& arguments, Chosen& chosen) {
  chosen.on_ranks = !arguments.dry_run;
  RECMILL_RETURN_IF_ERROR(refuse_unwritable("--html", arguments.html, /*overwrite=*/true));
  RECMILL_RETURN_IF_ERROR(refuse_unwritable("--order", arguments.order, /*overwrite=*/true));
  RECMILL_ASSIGN_OR_RETURN(const config::RunConfig config,
                           config::load_run_config(arguments.config.path, arguments.config.sets));
  if (arguments.dry_run) {
    return config.locate(print_ledger(config.options, arguments.json));
  }
  train::TrainingRequest request;
  if (arguments.resume) request.existing = train::ExistingRun::resume;
  if (arguments.overwrite) request.existing = train::ExistingRun::overwrite;
  request.export_plain = arguments.export_plain;
  request.order = arguments.order;
  request.begun = note_begin;
  request.default_dense_ops = find(config.source, "preprocess.dense") == nullptr;
  request.profile = arguments.profile || !arguments.html.empty();
  auto world = program::open_world(config.options.train);
  if (!world.ok()) return config.locate(world.status());
  chosen.world = *std::move(world);
  const train::JobSetting setting{posix_files(),
                                  *chosen.world,
                                  program::build_commit(),
                                  {versions_text(), config::to_toml(config.options)},
                                  progress_style(arguments.quiet),
                                  &watch_interrupts(),
                                  config::run_copy(config.options),
                                  config::options_of_text};
  auto summary = run_training(config.options, request, setting);
  if (!summary.ok()) return config.locate(summary.status());
  if (!chosen.world->has_first_rank()) return {};
  RECMILL_RETURN_IF_ERROR(print_summary(*std::move(summary), arguments, config.options));
  if (!arguments.quiet) {
    log_info("results are in " + config.options.train.runs + "/" + config.options.name);
  }
  return {};
}

}  // namespace

void add_train(CLI::App& app, Chosen& chosen) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* verb = app.add_subcommand("train", "train a model, with evaluations on the way");
  add_config_arguments(*verb, arguments->config);
  auto* resume =
      verb->add_flag("--resume", arguments->resume, "go on from the run's newest checkpoint");
  verb->add_flag("--overwrite", arguments->overwrite, "begin the run anew")->excludes(resume);
  verb->add_flag("--dry-run", arguments->dry_run, "print the memory that training needs, and stop");
  verb->add_option(
          "--export-plain", arguments->export_plain,
          "also write what a plain PyTorch model needs to repeat the run, into this folder")
      ->excludes(resume);
  verb->add_flag(
      "--profile", arguments->profile,
      "also print what each rank spent its time on, computing, waiting, bytes, by stage, and the "
      "memory it held beyond its rows");
  verb->add_option(
      "--order", arguments->order,
      "write to this file the numbers of the inputs as they are trained, in the training "
      "subset from 0, one a line");
  verb->add_option("--html", arguments->html,
                   "write a page of the run to this file: curves, a step's breakdown, the profile");
  verb->add_flag("--json", arguments->json, "print the summary as one JSON object");
  verb->add_flag("--quiet", arguments->quiet, "show no progress");
  verb->callback([arguments, &chosen] {
    chosen.action = [arguments, &chosen] { return train_model(*arguments, chosen); };
  });
}

}  // namespace recmill::cli
