// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/log.h"
#include "cli/measure_cluster.h"
#include "cli/pages/placement_page.h"
#include "cli/verb.h"
#include "comm/threads.h"
#include "config/run_config.h"
#include "placement_plan/plan_file.h"
#include "program/open_world.h"
#include "run/hotset/run_hot_set.h"
#include "run/memory.h"
#include "run/placement/placement_problem.h"
#include "run/resolved_run.h"
#include "schema/cluster_file.h"

namespace recmill::cli {
namespace {

using placement::PlannedWay;
using placement::PlannerKind;

struct PlanArguments {
  ConfigArguments config;
  std::vector<std::string> planners;
  std::string out, html, judge;
  bool overwrite = false, json = false, explain = false;
};

Result<PlannerKind> planner_named(const std::string& name) {
  std::string names;
  for (const auto& [kind, known] : EnumNames<PlannerKind>::names) {
    if (known == name) return kind;
    names += (names.empty() ? "" : ", ") + std::string(known);
  }
  return Status::BadRequest("--planner " + name + ": there are " + names);
}

/// Only by name, here or as the run's planner: the MILP, which is for few devices and partitions,
/// and slow; hot_cold, for which all lookups are counted.
Result<std::vector<PlannerKind>> planners_of(const PlanArguments& arguments, PlannerKind of_run) {
  std::vector<PlannerKind> kinds;
  for (const std::string& name : arguments.planners) {
    RECMILL_ASSIGN_OR_RETURN(const PlannerKind kind, planner_named(name));
    kinds.push_back(kind);
  }
  if (!kinds.empty()) return kinds;
  for (const auto& [kind, name] : EnumNames<PlannerKind>::names)
    if ((kind != PlannerKind::milp && kind != PlannerKind::hot_cold) || of_run == kind)
      kinds.push_back(kind);
  return kinds;
}

/// Why a run would not take the way; empty: it would. A run knows of no memory of devices but what
/// the configuration says.
std::string refusal_of(const PlannedWay& way, const train::PlacementOptions& options) {
  if (!way.refused.empty()) return way.refused;
  if (options.device_memory_mib == 0 && options.cluster.empty()) return "";
  const std::string lacking = way.rating.does_not_fit();
  return lacking.empty() ? "" : "the plan does not fit: " + lacking;
}

/// Whether planners that somebody named, here or in the configuration, have a plan for a run.
Status check_named(const PlanArguments& arguments, const std::vector<PlannedWay>& ways,
                   const train::PlacementOptions& options) {
  for (const PlannedWay& way : ways) {
    const std::string why = refusal_of(way, options);
    if (why.empty() || !way.name.empty()) continue;  // whoever judges a plan may want to know that
    if (way.kind == options.planner) return Status::BadRequest("placement.planner: " + why);
    if (arguments.planners.empty()) continue;
    return Status::BadRequest("--planner " + std::string(name_of(way.kind)) + ": " + why);
  }
  return {};
}

PlannedWay plan_way(const placement::Problem& problem, PlannerKind kind,
                    const placement::PlannerOptions& options) {
  PlannedWay way;
  way.kind = kind;
  const Stopwatch watch;
  auto proposal = plan_placement(problem, kind, options);
  way.seconds = watch.seconds();
  if (!proposal.ok()) {
    way.refused = proposal.status().message();
    return way;
  }
  way.proposal = *std::move(proposal);
  way.rating = rate(problem, way.proposal.plan);
  return way;
}

/// A plan that is there, judged as the planners' are.
Result<PlannedWay> judged_way(const placement::Problem& problem, const std::string& path) {
  PlannedWay way;
  RECMILL_ASSIGN_OR_RETURN(way.proposal.plan, read_plan(posix_files(), path));
  std::vector<TableSpec> specs;
  for (const placement::PlacedTable& table : problem.tables) specs.push_back(table.spec);
  const Status status = check_plan(way.proposal.plan, specs, problem.devices());
  if (!status.ok()) return status.at(path);
  way.name = path;
  way.rating = rate(problem, way.proposal.plan);
  return way;
}

/// What of the machine's memory a device may take where nobody has said it.
int64_t memory_of_device(const train::ResolvedRun& run) {
  return train::available_bytes() / run.ranks;
}

Status write_chosen(const PlanArguments& arguments, const std::vector<PlannedWay>& ways,
                    const std::string& planner) {
  const auto chosen = std::ranges::find_if(ways, [&](const PlannedWay& way) {
    return way.name.empty() && name_of(way.kind) == planner;
  });
  if (chosen == ways.end())
    return Status::BadRequest("--out: placement.planner is '" + planner +
                              "', which --planner leaves out");
  if (const std::string lacking = chosen->rating.does_not_fit(); !lacking.empty())
    return Status::BadRequest(planner + " does not fit: " + lacking);
  return write_plan(posix_files(), arguments.out, chosen->proposal.plan);
}

void print(const PlanArguments& arguments, const placement::Problem& problem,
           const std::vector<PlannedWay>& ways, const std::vector<std::string>& assumed) {
  if (arguments.json) {
    for (const PlannedWay& way : ways) std::puts(to_json(problem, way).dump().c_str());
    return;
  }
  for (const std::string& line : assumed) log_info(line);
  std::fputs(table_of(ways).c_str(), stdout);
  if (const std::string advice = recommendation(ways); !advice.empty())
    std::fputs((advice + "\n").c_str(), stdout);
  if (!arguments.explain) return;
  for (const PlannedWay& way : ways)
    if (way.refused.empty()) std::fputs(("\n" + explain(problem, way)).c_str(), stdout);
}

Status plan(const PlanArguments& arguments) {
  RECMILL_RETURN_IF_ERROR(refuse_unwritable("--out", arguments.out, arguments.overwrite));
  RECMILL_RETURN_IF_ERROR(refuse_unwritable("--html", arguments.html, arguments.overwrite));
  RECMILL_ASSIGN_OR_RETURN(const config::RunConfig config,
                           config::load_run_config(arguments.config.path, arguments.config.sets));
  const train::PlacementOptions& options = config.options.placement;
  RECMILL_ASSIGN_OR_RETURN(const auto kinds, planners_of(arguments, options.planner));
  auto run = train::resolve_run(config.options, posix_files());
  if (!run.ok()) return config.locate(run.status());
  if (std::ranges::count(kinds, PlannerKind::hot_cold) > 0) {
    ThreadsWorld world;
    auto set = train::find_hot_set(*run, memory_of_device(*run), {}, world, posix_files(),
                                   train::Progress::Style::silent);
    if (!set.ok()) return config.locate(set.status());
    run->hot_set = *std::move(set);
  }
  auto counts = train::placement_counts(*run, posix_files());
  if (!counts.ok()) return config.locate(counts.status());
  const auto problem =
      train::placement_problem(*run, *std::move(counts), memory_of_device(*run), posix_files());
  if (!problem.ok()) return config.locate(problem.status());
  std::vector<PlannedWay> ways;
  if (!arguments.judge.empty()) {
    RECMILL_ASSIGN_OR_RETURN(ways.emplace_back(), judged_way(*problem, arguments.judge));
  }
  for (const PlannerKind kind : kinds)
    ways.push_back(plan_way(*problem, kind, train::planner_options(*run)));
  const auto assumed = train::assumptions(*run, *problem);
  print(arguments, *problem, ways, assumed);
  if (!arguments.html.empty())
    RECMILL_RETURN_IF_ERROR(write_atomically(
        posix_files(), arguments.html, placement_page(run->options.name, *problem, ways, assumed)));
  RECMILL_RETURN_IF_ERROR(config.locate(check_named(arguments, ways, options)));
  if (arguments.out.empty()) return {};
  RECMILL_RETURN_IF_ERROR(
      write_chosen(arguments, ways, std::string(name_of(run->options.placement.planner))));
  if (!arguments.json)
    log_info("the plan is " + arguments.out +
             "; [embedding] store = \"placed\" and [placement] "
             "plan = \"" +
             arguments.out + "\" carry it out");
  return {};
}

struct MeasureArguments {
  std::string out;
  int64_t ranks = 0;
  bool overwrite = false, json = false;
};

Status measure(const MeasureArguments& arguments, Chosen& chosen) {
  chosen.on_ranks = true;
  RECMILL_RETURN_IF_ERROR(refuse_unwritable("--out", arguments.out, arguments.overwrite));
  if (arguments.ranks < 0)
    return Status::BadRequest(fmt::format("--ranks: must not be negative, is {}", arguments.ranks));
  train::TrainOptions options;
  options.ranks = arguments.ranks;
  RECMILL_ASSIGN_OR_RETURN(chosen.world, program::open_world(options));
  World& world = *chosen.world;
  const auto ranks = world.ranks(arguments.ranks);
  if (!ranks.ok()) return ranks.status().at("--ranks");
  return world.run(*ranks, [&](Communicator& communicator) -> Status {
    RECMILL_ASSIGN_OR_RETURN(const ClusterSpec cluster, measure_cluster(communicator, world));
    if (communicator.rank() != 0) return {};
    RECMILL_RETURN_IF_ERROR(write_cluster(posix_files(), arguments.out, cluster));
    if (arguments.json) {
      std::puts(to_json(cluster).dump().c_str());
    } else {
      std::fputs(table_of(cluster).c_str(), stdout);
    }
    return {};
  });
}

void add_measure(CLI::App& verb, Chosen& chosen) {
  auto arguments = std::make_shared<MeasureArguments>();
  CLI::App* measured = verb.add_subcommand(
      "measure",
      "measure latency and bandwidth between ranks; start it as training will be started");
  measured
      ->add_option("--out", arguments->out, "write the cluster to this file, for placement.cluster")
      ->required();
  measured->add_option("--ranks", arguments->ranks,
                       "number of ranks; threads by default, by MPI at most one for each process");
  measured->add_flag("--overwrite", arguments->overwrite, "replace the file that is there");
  measured->add_flag("--json", arguments->json, "print one JSON object");
  measured->callback([arguments, &chosen] {
    chosen.action = [arguments, &chosen] { return measure(*arguments, chosen); };
  });
}

}  // namespace

void add_plan(CLI::App& app, Chosen& chosen) {
  CLI::App* verb = app.add_subcommand(
      "plan",
      "plan where rows are stored and which are hot, before anything is allocated; measure links "
      "for that");
  verb->require_subcommand(1);
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* placement =
      verb->add_subcommand("placement", "decide which device stores each row of each table");
  add_config_arguments(*placement, arguments->config);
  placement->add_option(
      "--planner", arguments->planners,
      "planners to compare; default: all, but milp, which is for few partitions, and hot_cold only "
      "where it is placement.planner");
  placement->add_option("--judge", arguments->judge,
                        "also compute the cost of the plan in this file");
  placement->add_option("--out", arguments->out,
                        "write the plan of placement.planner to this file");
  placement->add_option("--html", arguments->html, "write a page with pictures to this file");
  placement->add_flag("--explain", arguments->explain,
                      "also print it device by device and table by table");
  placement->add_flag("--overwrite", arguments->overwrite, "replace files that are there");
  placement->add_flag("--json", arguments->json, "print one JSON object a planner");
  placement->callback(
      [arguments, &chosen] { chosen.action = [arguments] { return plan(*arguments); }; });
  add_plan_hotset(*verb, chosen);
  add_measure(*verb, chosen);
}

}  // namespace recmill::cli
