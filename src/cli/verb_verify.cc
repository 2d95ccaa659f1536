// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/json/json.h"
#include "base/log.h"
#include "checkpoint/digest.h"
#include "cli/named_checkpoint.h"
#include "cli/verb.h"
#include "cli/versions.h"
#include "config/run_config.h"
#include "program/open_world.h"
#include "verify/float64_verification.h"
#include "verify/verification.h"

namespace recmill::cli {
namespace {

struct VerifyArguments {
  ConfigArguments config;
  train::VerificationRequest request;
  std::vector<std::string> checkpoints;
  std::string against;
  int64_t iterations = 0;  // 0: as the kind of comparison says
  bool json = false;
};

/// Properties that say in which order hot and cold batches came, where one run had none: it may
/// have been trained on the same inputs in the same order all the same.
std::vector<std::string> ways(const checkpoint::Reader& a, const checkpoint::Reader& b) {
  const auto has_order = [](const checkpoint::Reader& reader) {
    return reader.properties().is_object() && reader.properties().contains("order");
  };
  if (has_order(a) && has_order(b)) return {};
  return {"order", "schedule"};
}

Status compare_checkpoints(const VerifyArguments& arguments) {
  RECMILL_ASSIGN_OR_RETURN(const auto a, open_named_checkpoint(arguments.checkpoints[0]));
  RECMILL_ASSIGN_OR_RETURN(const auto b, open_named_checkpoint(arguments.checkpoints[1]));
  RECMILL_ASSIGN_OR_RETURN(const auto all, checkpoint::digests(*a));
  Json digests;
  for (const checkpoint::Digest& digest : all) digests[digest.name] = crc_text(digest.crc);
  print_result(digests, arguments.json);
  RECMILL_ASSIGN_OR_RETURN(const auto differences, checkpoint::compare(*a, *b, ways(*a, *b)));
  if (differences.empty()) {
    if (!arguments.json) std::printf("all %zu entries are the same\n", all.size());
    return {};
  }
  for (const auto& difference : differences) log_info(difference.text);
  return Status::Failed(std::to_string(differences.size()) +
                        " entries differ, the first: " + differences.front().text);
}

// The distances to a run in float64 as a table, below what is said of all of them.
void print_distances(Json result) {
  const Json distances = std::move(result["distances"]);
  result.erase("distances");
  print_result(result, /*json=*/false);
  std::printf("%-32s %12s %12s %8s\n", "distance from float64", "configured", "plain", "ratio");
  for (const Json& distance : distances) {
    std::printf("%-32s %12.3g %12.3g %8.3g\n", distance["name"].get<std::string>().c_str(),
                distance["configured"].get<double>(), distance["plain"].get<double>(),
                distance["ratio"].get<double>());
  }
}

Status verify_run(VerifyArguments& arguments, Chosen& chosen) {
  if (!arguments.checkpoints.empty()) return compare_checkpoints(arguments);
  chosen.on_ranks = true;
  if (arguments.config.path.empty()) {
    return Status::BadRequest("verify: name a configuration, or --checkpoints A B");
  }
  RECMILL_ASSIGN_OR_RETURN(const config::RunConfig config,
                           config::load_run_config(arguments.config.path, arguments.config.sets));
  for (const int64_t ranks : arguments.request.ranks) {
    if (ranks < 1) return Status::BadRequest("--ranks: must be at least 1");
  }
  if (arguments.iterations < 0) return Status::BadRequest("--iterations: must not be negative");
  auto world = program::open_world(config.options.train);
  if (!world.ok()) return config.locate(world.status());
  chosen.world = *std::move(world);
  const bool first = chosen.world->has_first_rank();
  if (!first && !arguments.against.empty()) return {};  // it is of one process
  if (first) arguments.request.say = [](const std::string& line) { log_info(line); };
  arguments.request.identity = {versions_text(), config::to_toml(config.options)};
  if (arguments.iterations > 0) arguments.request.iterations = arguments.iterations;
  const auto result =
      arguments.against.empty()
          ? train::verify(config.options, arguments.request, *chosen.world, posix_files())
          : train::verify_against_float64(config.options,
                                          arguments.iterations > 0 ? arguments.iterations : 100,
                                          posix_files(), arguments.request.say);
  if (!result.ok()) return config.locate(result.status());
  if (!first) return {};
  if (arguments.against.empty() && (*result)["ranks"].empty()) {
    return Status::BadRequest(
        "--ranks: all are more than the run can have, so nothing was compared");
  }
  if (result->contains("distances") && !arguments.json) {
    print_distances(*result);
  } else {
    print_result(*result, arguments.json);
  }
  return {};
}

}  // namespace

void add_verify(CLI::App& app, Chosen& chosen) {
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* verb = app.add_subcommand(
      "verify", "compare the engine with the plain references, bit for bit, on your data");
  add_config_arguments(*verb, arguments->config);
  verb->get_option("config")->required(false);
  verb->add_option("--ranks", arguments->request.ranks, "numbers of ranks to compare")
      ->delimiter(',');
  verb->add_option("--iterations", arguments->iterations,
                   "training iterations, at most; 0, the default, is 50, or 100 against float64");
  verb->add_option("--against", arguments->against,
                   "measure how far the run and the plain run are from a run in float64")
      ->check(CLI::IsMember({"float64"}));
  verb->add_option("--checkpoints", arguments->checkpoints,
                   "instead compare two checkpoints, or the newest of two runs")
      ->expected(2);
  verb->add_flag("--json", arguments->json, "print one JSON object");
  verb->callback([arguments, &chosen] {
    chosen.action = [arguments, &chosen] { return verify_run(*arguments, chosen); };
  });
}

}  // namespace recmill::cli
