// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/json/json.h"
#include "base/log.h"
#include "cli/pages/hotset_page.h"
#include "cli/verb.h"
#include "config/run_config.h"
#include "hotset/hot_schedule.h"
#include "hotset_plan/hot_set_file.h"
#include "run/hotset/choose_hot_rows.h"
#include "run/hotset/count_hot_inputs.h"
#include "run/hotset/count_moved_rows.h"
#include "run/hotset/hot_folder.h"
#include "run/memory.h"
#include "run/resolved_run.h"

namespace recmill::cli {
namespace {

using hotset::HotFigures;
using train::HotCensus;

struct HotsetArguments {
  ConfigArguments config;
  std::vector<int64_t> cutoffs;
  std::vector<double> losses;
  std::string out, html;
  bool explain = false, overwrite = false, json = false, quiet = false;
};

/// A line of the plan.
struct HotLine {
  int64_t cutoff = 0;  // 0: of the hottest rows
  HotFigures figures;
  bool chosen = false;
};

std::vector<HotLine> lines_of(const HotCensus& census, const std::vector<int64_t>& asked) {
  const auto of_curve = census.curve.cutoffs();
  std::vector<int64_t> cutoffs(of_curve.begin(), of_curve.end());
  if (!asked.empty()) {
    cutoffs = asked;
  } else if (census.set.cutoff > 0) {
    cutoffs.push_back(census.set.cutoff);
  }
  std::ranges::sort(cutoffs);
  cutoffs.erase(std::unique(cutoffs.begin(), cutoffs.end()), cutoffs.end());
  std::vector<HotLine> lines;
  for (const int64_t cutoff : cutoffs)
    lines.push_back({cutoff, census.at(cutoff), cutoff == census.set.cutoff});
  if (census.set.cutoff == 0 && asked.empty()) lines.push_back({0, census.of_set(), true});
  return lines;
}

/// Of the chosen cutoff, what a sample leaves open.
Json intervals(const HotCensus& census) {
  const hotset::HotShares& shares = census.judged->shares;
  return {{"counted_inputs", census.set.inputs},
          {"hot_inputs_low", shares.inputs.low},
          {"hot_inputs_high", shares.inputs.high},
          {"far_lookups_low", 1 - shares.lookups.high},
          {"far_lookups_high", 1 - shares.lookups.low}};
}

Json to_json(const HotLine& line, const HotCensus& census) {
  Json json{{"cutoff", line.cutoff},
            {"hot_rows", line.figures.hot_rows},
            {"hot_bytes", line.figures.hot_bytes},
            {"hot_inputs", line.figures.hot_inputs},
            {"inputs", census.inputs()},
            {"far_lookups", line.figures.far_lookups},
            {"lookups", census.lookups()},
            {"chosen", line.chosen}};
  if (line.chosen && census.judged) json["shares_by_sample"] = intervals(census);
  return json;
}

double percent(int64_t part, int64_t whole) {
  return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

/// For people, who want no thousand lines: every so many, and the chosen one.
void print_lines(const std::vector<HotLine>& lines, const HotCensus& census) {
  constexpr size_t kShown = 40;
  const size_t step = (lines.size() + kShown - 1) / kShown;
  std::printf("%12s %12s %14s %12s %8s %14s %8s\n", "cutoff", "hot rows", "bytes", "hot inputs",
              "share", "far lookups", "share");
  for (size_t i = 0; i < lines.size(); ++i) {
    const HotLine& line = lines[i];
    if (i % step != 0 && i + 1 != lines.size() && !line.chosen) continue;
    std::printf("%12s %12ld %14ld %12ld %6.2f %% %14ld %6.2f %%%s\n",
                line.cutoff == 0 ? "top" : std::to_string(line.cutoff).c_str(),
                line.figures.hot_rows, line.figures.hot_bytes, line.figures.hot_inputs,
                percent(line.figures.hot_inputs, census.inputs()), line.figures.far_lookups,
                percent(line.figures.far_lookups, census.lookups()), line.chosen ? "  chosen" : "");
  }
  if (step > 1) std::printf("(every %zuth of %zu cutoffs; --json has all)\n", step, lines.size());
}

void print_sample(const HotCensus& census) {
  const train::LookupSample& sample = census.judged->sample;
  const hotset::HotShares& shares = census.judged->shares;
  std::printf(
      "by a sample of %zu of %ld blocks, of which %ld inputs were counted; by 99 %% intervals of "
      "the chosen rows %.2f to %.2f %% of all inputs are hot, and %.2f to %.2f %% of all lookups "
      "far\n",
      sample.blocks.size(), sample.all_blocks, census.set.inputs, 100 * shares.inputs.low,
      100 * shares.inputs.high, 100 * (1 - shares.lookups.high), 100 * (1 - shares.lookups.low));
}

/// log10 of the chance that all samples of a random batch are hot (figure 4); none: it is 0.
std::optional<double> log10_all_hot(const HotCensus& census, int64_t batch_size) {
  const int64_t hot = census.of_set().hot_inputs;
  if (hot == 0) return std::nullopt;
  return static_cast<double>(batch_size) *
         std::log10(static_cast<double>(hot) / static_cast<double>(census.inputs()));
}

hotset::HotBatches batches_of(const HotCensus& census, int64_t batch_size) {
  const int64_t hot = census.of_set().hot_inputs, inputs = census.inputs();
  const auto batches = [&](int64_t samples) { return (samples + batch_size - 1) / batch_size; };
  return {batches(inputs - hot), batches(hot)};
}

/// `apart`: of hot and cold batches by themselves; none: there is no folder of them.
Json explanation(const HotCensus& census, const train::MovedByEpoch& moved,
                 const std::optional<train::MovedByEpoch>& apart, int64_t batch_size) {
  Json json;
  const auto all_hot = log10_all_hot(census, batch_size);
  json["log10_all_hot"] = all_hot ? Json(*all_hot) : Json();
  const std::vector<int64_t> cold = census.cold_by_one_table();
  const auto most = std::ranges::max_element(cold);
  if (most != cold.end() && *most > 0) {
    const auto t = static_cast<size_t>(most - cold.begin());
    const hotset::HotProblemTable& table = census.problem.tables[t];
    json["next_table"] = {
        {"table", table.name},
        {"adds_hot_inputs", *most},
        {"adds_bytes", (table.rows - census.set.tables[t].hot()) * table.row_bytes}};
  }
  const hotset::HotBatches batches = batches_of(census, batch_size);
  json["cold_batches"] = batches.cold;
  json["hot_batches"] = batches.hot;
  json["iterations"] = moved.iterations;
  json["iterations_without_far"] = moved.without_far;
  json["moved_rows"] = {{"all_far", moved.all_far}, {"hot_near_mixed", moved.hot_near}};
  if (apart) {
    json["iterations_without_far_hot_cold"] = apart->without_far;
    json["moved_rows"]["hot_near_hot_cold"] = apart->hot_near;
    json["moved_rows"]["fae"] = apart->of_fae;
  }
  return json;
}

void print_explanation(const Json& of, int64_t batch_size) {
  std::printf("\n");
  if (of["log10_all_hot"].is_null()) {
    std::printf("no input is hot\n");
  } else {
    std::printf("a random batch of %ld is all hot with a chance of 10^%.4g\n", batch_size,
                of["log10_all_hot"].get<double>());
  }
  if (of.contains("next_table"))
    std::printf("table '%s', all hot, would make %ld inputs more hot, for %ld bytes\n",
                of["next_table"]["table"].get<std::string>().c_str(),
                of["next_table"]["adds_hot_inputs"].get<int64_t>(),
                of["next_table"]["adds_bytes"].get<int64_t>());
  std::printf(
      "an epoch has %ld cold and %ld hot batches; in the data's order %ld of %ld iterations "
      "look no far row up\n",
      of["cold_batches"].get<int64_t>(), of["hot_batches"].get<int64_t>(),
      of["iterations_without_far"].get<int64_t>(), of["iterations"].get<int64_t>());
  std::printf(
      "rows that an epoch moves, fetched and written back: %ld where all are far, %ld where "
      "hot rows are near\n",
      of["moved_rows"]["all_far"].get<int64_t>(),
      of["moved_rows"]["hot_near_mixed"].get<int64_t>());
  if (!of["moved_rows"].contains("fae")) {
    std::printf(
        "what hot and cold batches by themselves would move is known with hotset.order = "
        "\"hot_cold\" and hotset.folder\n");
    return;
  }
  std::printf(
      "with hot and cold batches by themselves: %ld where hot rows are near, and %ld "
      "iterations look no far row up; %ld as FAE moves them\n",
      of["moved_rows"]["hot_near_hot_cold"].get<int64_t>(),
      of["iterations_without_far_hot_cold"].get<int64_t>(), of["moved_rows"]["fae"].get<int64_t>());
}

/// The schedules that losses make (equation 7), until an epoch ends after the last of them.
std::vector<hotset::Block> schedules_of(const hotset::HotBatches& epoch,
                                        std::span<const double> losses) {
  auto state = hotset::first_schedule(*hotset::Percent::of(hotset::kFirstRate));
  std::vector<hotset::Block> blocks;
  do {
    const auto of_epoch = hotset::blocks_of_epoch(epoch, losses, state);
    blocks.insert(blocks.end(), of_epoch.begin(), of_epoch.end());
  } while (!losses.empty() && epoch.cold + epoch.hot > 0);
  return blocks;
}

void print_schedules(const std::vector<hotset::Block>& blocks, bool json) {
  if (!json) std::printf("\n%9s %9s %9s %9s\n", "schedule", "rate", "cold", "hot");
  for (const hotset::Block& block : blocks) {
    if (json) {
      const Json line{{"schedule", block.schedule},
                      {"rate", block.rate.value()},
                      {"cold", block.cold},
                      {"hot", block.hot}};
      std::puts(line.dump().c_str());
    } else {
      std::printf("%9ld %9.6g %9ld %9ld\n", block.schedule, block.rate.value(), block.cold,
                  block.hot);
    }
  }
}

/// What the set does not bring.
void warn(const HotCensus& census, int64_t batch_size) {
  const int64_t hot = census.of_set().hot_inputs, inputs = census.inputs();
  if (hot == 0) {
    log_warning("no input is hot: each looks a far row up");
  } else if (hot == inputs) {
    log_warning("all inputs are hot: the order of batches saves nothing");
  } else if (std::min(hot, inputs - hot) < batch_size) {
    log_warning(fmt::format("only {} inputs are {}: less than a batch", std::min(hot, inputs - hot),
                            hot < inputs - hot ? "hot" : "cold"));
  }
}

Status check(const HotsetArguments& arguments) {
  RECMILL_RETURN_IF_ERROR(refuse_unwritable("--out", arguments.out, arguments.overwrite));
  RECMILL_RETURN_IF_ERROR(refuse_unwritable("--html", arguments.html, arguments.overwrite));
  if (!arguments.cutoffs.empty() && std::ranges::min(arguments.cutoffs) < 1)
    return Status::BadRequest("--cutoffs: a cutoff is at least 1 lookup");
  for (const double loss : arguments.losses)
    if (!std::isfinite(loss)) return Status::BadRequest("--losses: a loss is a finite number");
  return {};
}

/// Those that the losses make in the first epoch, or half of both kinds a schedule.
hotset::RatePolicy policy_of(const hotset::HotBatches& epoch, std::span<const double> losses) {
  hotset::RatePolicy policy;
  policy.fixed = hotset::Percent::of(hotset::kFirstRate);
  if (losses.empty()) return policy;
  policy.fixed.reset();
  auto state = hotset::first_schedule(*hotset::Percent::of(hotset::kFirstRate));
  for (const hotset::Block& block : hotset::blocks_of_epoch(epoch, losses, state))
    policy.repeated.emplace(block.schedule, block.rate);
  return policy;
}

Status explain(const HotsetArguments& arguments, train::ResolvedRun run, const HotCensus& census) {
  const int64_t batch_size = run.options.train.batch_size;
  const auto style = progress_style(arguments.quiet);
  const bool has_folder = run.options.hotset.order == train::BatchOrder::hot_cold;
  std::optional<train::MovedByEpoch> apart;
  if (has_folder) {
    RECMILL_RETURN_IF_ERROR(open_hot_folder(run, posix_files()));
    hotset::RatePolicy policy = policy_of(batches_of(census, batch_size), arguments.losses);
    policy.hot_first = run.hot_folder->rules.policy.hot_first;
    RECMILL_ASSIGN_OR_RETURN(apart, count_moved_rows_apart(run, policy, posix_files(), style));
  }
  RECMILL_ASSIGN_OR_RETURN(const auto moved,
                           count_moved_rows(run, census.set, posix_files(), style));
  const Json of = explanation(census, moved, apart, batch_size);
  if (arguments.json) {
    std::puts(of.dump().c_str());
  } else {
    print_explanation(of, batch_size);
  }
  return {};
}

Status write_page(const HotsetArguments& arguments, const std::string& name,
                  const HotCensus& census, const std::vector<HotLine>& lines) {
  HotsetPage page{name, census.inputs(), census.lookups(), census.of_set(), {}};
  for (const HotLine& line : lines)
    if (line.cutoff > 0) page.curve.push_back({line.cutoff, line.figures});
  return write_atomically(posix_files(), arguments.html, hotset_page(page));
}

Status plan_hotset(const HotsetArguments& arguments) {
  RECMILL_RETURN_IF_ERROR(check(arguments));
  RECMILL_ASSIGN_OR_RETURN(const config::RunConfig config,
                           config::load_run_config(arguments.config.path, arguments.config.sets));
  const auto run = train::resolve_run(config.options, posix_files());
  if (!run.ok()) return config.locate(run.status());
  const auto free = run->options.hotset.bytes > 0 ? 0 : train::free_for_hot_rows(*run);
  if (!free.ok()) return config.locate(free.status());
  const auto census =
      train::count_hot_inputs(*run, *free, posix_files(), progress_style(arguments.quiet));
  if (!census.ok()) return config.locate(census.status());
  const std::vector<HotLine> lines = lines_of(**census, arguments.cutoffs);
  if (arguments.json) {
    for (const HotLine& line : lines) std::puts(to_json(line, **census).dump().c_str());
  } else {
    print_lines(lines, **census);
    if ((*census)->judged) print_sample(**census);
  }
  if (arguments.explain) RECMILL_RETURN_IF_ERROR(explain(arguments, *run, **census));
  const int64_t batch_size = run->options.train.batch_size;
  if (!arguments.losses.empty())
    print_schedules(schedules_of(batches_of(**census, batch_size), arguments.losses),
                    arguments.json);
  warn(**census, batch_size);
  if (!arguments.html.empty())
    RECMILL_RETURN_IF_ERROR(write_page(arguments, config.options.name, **census, lines));
  if (arguments.out.empty()) return {};
  return write_hot_set(posix_files(), arguments.out, (*census)->set);
}

}  // namespace

void add_plan_hotset(CLI::App& verb, Chosen& chosen) {
  auto arguments = std::make_shared<HotsetArguments>();
  CLI::App* hotset = verb.add_subcommand(
      "hotset",
      "decide which rows are hot, that is, stored near, and say what each cutoff makes hot");
  add_config_arguments(*hotset, arguments->config);
  hotset
      ->add_option("--cutoffs", arguments->cutoffs,
                   "lookups that make a row hot; default: each at which fewer rows are hot than at "
                   "the one before")
      ->delimiter(',');
  hotset
      ->add_option("--losses", arguments->losses,
                   "also print the schedules of hot and cold batches that these losses, one after "
                   "each schedule, would make")
      ->delimiter(',');
  hotset->add_option("--out", arguments->out, "write the hot set to this file, for hotset.plan");
  hotset->add_option("--html", arguments->html, "write a page with pictures to this file");
  hotset->add_flag("--explain", arguments->explain,
                   "also replay an epoch, and print the rows that it moves");
  hotset->add_flag("--overwrite", arguments->overwrite, "replace files that are there");
  hotset->add_flag("--json", arguments->json, "print one JSON object a cutoff");
  hotset->add_flag("--quiet", arguments->quiet, "show no progress");
  hotset->callback(
      [arguments, &chosen] { chosen.action = [arguments] { return plan_hotset(*arguments); }; });
}

}  // namespace recmill::cli
