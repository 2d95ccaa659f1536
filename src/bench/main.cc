// SPDX-License-Identifier: Apache-2.0
// recmill-bench NAME [--case CASE ...] [--json], which `recmill bench` becomes.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/json/json.h"
#include "bench/bench.h"
#include "program/build_info.h"
#include "program/open_world.h"
#include "program/program.h"

namespace recmill::bench {
namespace {

struct Arguments {
  std::string name;
  BenchOptions options;
  std::string device = "cpu";
  bool json = false, no_rivals = false;
};

void print_line(const BenchLine& line) {
  std::printf("%-28s %12.6g %s", line.name.c_str(), line.value, line.unit.c_str());
  if (!line.rival.empty()) {
    std::printf("  %.3f x of %s (spread %.1f %%)", line.ratio.ratio, line.rival.c_str(),
                100 * line.ratio.spread);
  }
  if (line.rival.empty() && line.limit == 0) std::printf("  %s", line.metric.c_str());
  if (line.limit != 0) std::printf("  %.0f %% of the limit", 100 * line.of_limit);
  std::printf("\n");
}

Status bench(Arguments& arguments, program::Chosen& chosen) {
  BenchOptions& options = arguments.options;
  if (options.threads < 1) return Status::BadRequest("--threads: must be 1 or more");
  if (!(options.solver_seconds >= 0))
    return Status::BadRequest("--solver-seconds: must be 0 or more");
  if (!(options.scale >= 0)) return Status::BadRequest("--scale: must be 0 or more");
  if (options.pairs < 1) return Status::BadRequest("--pairs: must be 1 or more");
  for (const auto& [kind, name] : EnumNames<DeviceKind>::names)
    if (name == arguments.device) options.device = kind;
  options.rivals = !arguments.no_rivals;
  options.commit = program::build_commit();
  const train::TrainOptions defaults;
  RECMILL_ASSIGN_OR_RETURN(chosen.world, program::open_world(defaults));
  options.world = chosen.world.get();
  return run_bench(arguments.name, options, [&](const BenchLine& line) {
    if (arguments.json) {
      std::printf("%s\n", to_json(line, options).dump().c_str());
    } else {
      print_line(line);
    }
    std::fflush(stdout);
  });
}

void add_options(CLI::App& app, program::Chosen& chosen) {
  auto arguments = std::make_shared<Arguments>();
  BenchOptions& options = arguments->options;
  app.add_option("name", arguments->name, "one of: " + bench_names())->required();
  app.add_option("--case", options.cases, "a case to run, in place of all; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--threads", options.threads, "of the cases that do not say otherwise")
      ->capture_default_str();
  app.add_option("--pairs", options.pairs, "timed repetitions of each side")->capture_default_str();
  app.add_flag("--quick", options.quick,
               "kernels: short tuning, few batches and cases, ends within four minutes; "
               "placement: counts of 5 million lookups, not of 100; "
               "cost_model: small tables and batches, to see that it works");
  app.add_option("--solver-seconds", options.solver_seconds,
                 "placement: time of a case that solves; 0: as the case says")
      ->capture_default_str();
  app.add_option("--figure", options.figure,
                 "kernels: the cases of figure 3, 9, 10, 11, 12 or 13 of RecFlex (SC 2024)")
      ->check(CLI::IsMember({3, 9, 10, 11, 12, 13}));
  app.add_option(
         "--device", arguments->device,
         "cached, embedding, kernels, train: cpu, cuda, or emulated, whose times are no claim")
      ->check(CLI::IsMember({"cpu", "cuda", "emulated"}))
      ->capture_default_str();
  app.add_option("--scale", options.scale,
                 "embedding on a GPU: rows and lookups as a share of the case's; 0: all, on the "
                 "emulator a thousandth")
      ->capture_default_str();
  app.add_flag("--no-rivals", arguments->no_rivals, "time ours alone");
  app.add_option("--python", options.python, "interpreter of the rivals")->capture_default_str();
  app.add_option("--scripts", options.scripts, "folder of the rivals' scripts")
      ->capture_default_str();
  app.add_flag("--json", arguments->json, "print one JSON object a line");
  app.callback([arguments, &chosen] {
    chosen.action = [arguments, &chosen] { return bench(*arguments, chosen); };
  });
}

}  // namespace
}  // namespace recmill::bench

int main(int argc, char** argv) {
  return recmill::program::run_program(
      {"recmill bench", "Checks and times a part against its rivals.", recmill::bench::add_options},
      argc, argv);
}
