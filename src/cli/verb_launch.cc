// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/log.h"
#include "cli/launched.h"
#include "cli/verb.h"
#include "config/option_binder.h"
#include "server/launch.h"
#include "server/rank_guard.h"

namespace recmill::cli {
namespace {

std::atomic<int> g_interrupts{0};

void count_interrupt(int) {
  ++g_interrupts;
}

/// The verb's own mistakes are told by its ranks; that there is no such verb is told before any.
Status check_verb(const std::string& word, const CLI::App& app) {
  std::vector<std::string> verbs;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!each->get_group().empty() && each->get_name() != "launch")
      verbs.push_back(each->get_name());
  if (std::ranges::find(verbs, word) != verbs.end()) return {};
  return Status::BadRequest("launch: '" + word + "' is no verb" + config::suggestion(word, verbs) +
                            "; what follows -- is a verb with its arguments, such as train CONFIG");
}

Status launch_job(server::LaunchOptions options, const CLI::App& app) {
  if (options.ranks < 1) return Status::BadRequest("--ranks: must be at least 1");
  if (options.resume_ranks < 0) return Status::BadRequest("--resume-ranks: must not be negative");
  if (options.restarts < 0) return Status::BadRequest("--restarts: must not be negative");
  if (!(options.limits.silence_seconds > 0) || !(options.limits.start_seconds > 0))
    return Status::BadRequest("--silence-seconds, --start-seconds: must be above 0");
  RECMILL_RETURN_IF_ERROR(check_verb(options.words.at(0), app));
  RECMILL_ASSIGN_OR_RETURN(const std::string program, own_path());
  options.program = {program, "guard", "--"};
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, count_interrupt);
  // Open MPI refuses to be run by root unless it is told so twice; who starts this has chosen to.
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
  return server::launch(options, {.files = posix_files(),
                                  .variables = kGuardVariables,
                                  .interrupts = [] { return g_interrupts.load(); },
                                  .say = [](const std::string& line) { log_info(line); }});
}

const char* variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Status guard(const std::vector<std::string>& words) {
  server::GuardSetting setting{
      .rank = -1,
      .addresses = variable(kGuardVariables.addresses.c_str()),
      .token = variable(kGuardVariables.token.c_str()),
      .lease_seconds = std::atof(variable(kGuardVariables.lease_seconds.c_str())),
      .note_variable = kNoteVariable};
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    if (setting.rank < 0 && *variable(name) != '\0') setting.rank = std::atoi(variable(name));
  }
  if (setting.rank < 0 || setting.addresses.empty())
    return Status::BadRequest("guard: is started by recmill launch alone");
  RECMILL_ASSIGN_OR_RETURN(const std::string program, own_path());
  std::vector<std::string> rank{program};
  rank.insert(rank.end(), words.begin(), words.end());
  return server::guard_rank(setting, rank);
}

}  // namespace

void add_launch(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<server::LaunchOptions>();
  CLI::App* verb = app.add_subcommand(
      "launch",
      "start a verb on ranks over MPI, on this host or on several; watch them, and go on from the "
      "newest checkpoint when one is lost");
  verb->add_option("--ranks", options->ranks, "ranks, each a process")->required();
  verb->add_option(
      "--hosts", options->hosts,
      "file of hosts, a line each: NAME slots=N, the ranks it may hold; none: this host");
  verb->add_option("--resume-ranks", options->resume_ranks,
                   "ranks after a loss; 0: as many as before, or as the hosts that are left hold");
  verb->add_option("--restarts", options->restarts, "starts after a loss, at most")
      ->capture_default_str();
  verb->add_option("--silence-seconds", options->limits.silence_seconds,
                   "without a sign of life, after which a rank is lost")
      ->capture_default_str();
  verb->add_option("--start-seconds", options->limits.start_seconds,
                   "in which all ranks have started")
      ->capture_default_str();
  verb->add_option("--mpirun", options->mpirun, "launcher of Open MPI or MPICH")
      ->capture_default_str();
  verb->add_option("--remote-shell", options->remote_shell,
                   "in place of ssh: called with a host and a command");
  verb->add_option("words", options->words, "-- and the verb with its arguments")->required();
  verb->callback([options, &app, &chosen] {
    chosen.action = [options, &app] { return launch_job(*options, app); };
  });
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* guarded = app.add_subcommand("guard", "")->group("");
  guarded->add_option("words", *words)->required();
  guarded->callback([words, &chosen] { chosen.action = [words] { return guard(*words); }; });
}

}  // namespace recmill::cli
