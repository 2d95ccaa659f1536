// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "base/log.h"
#include "cli/launched.h"
#include "cli/verb.h"
#include "config/option_binder.h"
#include "run/memory.h"
#include "server/guard.h"
#include "server/launch.h"

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
  return Status::BadRequest("launch: '" + word + "' is not a verb" +
                            config::suggestion(word, verbs) +
                            "; what follows -- is a verb with its arguments, such as train CONFIG");
}

/// Of embedding servers beside the ranks.
struct ServerArguments {
  int count = 0;
  std::string disk;
  bool insecure = false;
};

/// Servers, and what ranks are told of them. Rows that a server has lost are those of the newest
/// checkpoint, so that all start again from there.
Result<server::Role> make_servers(const ServerArguments& of, bool on_hosts, server::Role& ranks) {
  if (of.count < 0) return Status::BadRequest("--servers: must not be negative");
  if (of.count > 0 && on_hosts && !of.insecure)
    return Status::BadRequest(
        "--servers: on other hosts they are reached without a token or TLS; allow that with "
        "--insecure, or start `recmill server embedding` there and name lookahead.servers");
  const std::string host = on_hosts ? "0.0.0.0" : "127.0.0.1";
  server::Role servers{.name = "server", .kind = server::RoleKind::servers};
  servers.words = {"server", "embedding", "--listen", host + ":{port}"};
  if (on_hosts) servers.words.push_back("--insecure");
  if (!of.disk.empty())
    servers.words.insert(servers.words.end(), {"--disk", of.disk + "/server-{index}"});
  // The folder of the ranks, who write below it too.
  servers.words.insert(servers.words.end(),
                       {"--checkpoints", std::filesystem::current_path().string()});
  // Servers share this machine with each other and with ranks.
  if (!on_hosts && of.count > 0)
    servers.words.insert(servers.words.end(),
                         {"--memory", std::to_string(train::available_bytes() / 2 / of.count)});
  servers.count = of.count;
  servers.restart = server::Restart::all;
  servers.restarts = ranks.restarts;
  servers.grace_seconds = 5.0;
  servers.limits = ranks.limits;
  std::vector<std::string> sets{"lookahead.home=remote", "lookahead.servers=[{\"server\"}]"};
  if (on_hosts) sets.push_back("lookahead.insecure=true");
  for (const std::string& set : sets) {
    if (of.count == 0) break;
    ranks.words.push_back("--set");
    ranks.words.push_back(set);
  }
  return servers;
}

Status launch_job(server::LaunchOptions options, server::Role ranks, const ServerArguments& of,
                  const CLI::App& app) {
  if (ranks.count < 1) return Status::BadRequest("--ranks: must be at least 1");
  if (ranks.resume_count < 0) return Status::BadRequest("--resume-ranks: must not be negative");
  if (ranks.restarts < 0) return Status::BadRequest("--restarts: must not be negative");
  if (!(ranks.limits.silence_seconds > 0) || !(ranks.limits.start_seconds > 0))
    return Status::BadRequest("--silence-seconds, --start-seconds: must be above 0");
  RECMILL_RETURN_IF_ERROR(check_verb(ranks.words.at(0), app));
  RECMILL_ASSIGN_OR_RETURN(const std::string program, own_path());
  RECMILL_ASSIGN_OR_RETURN(const server::Role servers,
                           make_servers(of, !options.hosts.empty(), ranks));
  if (of.count > 0) options.roles.push_back(servers);
  options.roles.push_back(ranks);
  options.guard = {program, "guard"};
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

/// Of a server, which a launcher starts by itself, the number is an option.
Status guard(server::GuardSetting setting, const std::vector<std::string>& words) {
  setting.addresses = variable(kGuardVariables.addresses.c_str());
  setting.token = variable(kGuardVariables.token.c_str());
  setting.lease_seconds = std::atof(variable(kGuardVariables.lease_seconds.c_str()));
  setting.note_variable = kNoteVariable;
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    if (setting.index < 0 && *variable(name) != '\0') setting.index = std::atoi(variable(name));
  }
  if (setting.index < 0 || setting.addresses.empty())
    return Status::BadRequest("guard: is started by recmill launch alone");
  RECMILL_ASSIGN_OR_RETURN(const std::string program, own_path());
  std::vector<std::string> process{program};
  process.insert(process.end(), words.begin(), words.end());
  return server::guard_process(setting, process);
}

void add_guard(CLI::App& app, Chosen& chosen) {
  auto words = std::make_shared<std::vector<std::string>>();
  auto setting = std::make_shared<server::GuardSetting>();
  setting->index = -1;
  CLI::App* verb = app.add_subcommand("guard", "")->group("");
  verb->add_option("--role", setting->role);
  verb->add_option("--index", setting->index);
  verb->add_option("--grace-seconds", setting->grace_seconds);
  verb->add_option("words", *words)->required();
  verb->callback([setting, words, &chosen] {
    chosen.action = [setting, words] { return guard(*setting, *words); };
  });
}

}  // namespace

void add_launch(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<server::LaunchOptions>();
  auto ranks = std::make_shared<server::Role>();
  auto servers = std::make_shared<ServerArguments>();
  CLI::App* verb = app.add_subcommand(
      "launch",
      "start a verb on ranks over MPI, on this host or on several; watch them, and go on from the "
      "newest checkpoint when one is lost");
  verb->add_option("--ranks", ranks->count, "number of ranks, each of which is a process")
      ->required();
  verb->add_option("--hosts", options->hosts,
                   "file of hosts, one a line: NAME slots=N, where N is how many ranks it may "
                   "hold; default: this host");
  verb->add_option(
      "--resume-ranks", ranks->resume_count,
      "ranks after a loss; 0: as many as before, or as many as the hosts that are left may hold");
  verb->add_option("--restarts", ranks->restarts, "restarts, at most")->capture_default_str();
  verb->add_option("--silence-seconds", ranks->limits.silence_seconds,
                   "seconds without a sign of life after which a rank counts as lost")
      ->capture_default_str();
  verb->add_option("--start-seconds", ranks->limits.start_seconds,
                   "seconds in which all ranks must have started")
      ->capture_default_str();
  verb->add_option("--servers", servers->count,
                   "embedding servers beside the ranks, which outlive lost ranks; needs "
                   "embedding.store = \"cached\"");
  verb->add_option("--servers-disk", servers->disk,
                   "folder for rows of --servers, in place of their memory");
  verb->add_flag("--insecure", servers->insecure,
                 "let servers on other hosts be reached without a token or TLS");
  verb->add_option("--mpirun", options->mpirun, "launcher of Open MPI or MPICH")
      ->capture_default_str();
  verb->add_option("--remote-shell", options->remote_shell,
                   "command in place of ssh; it is called with a host and a command");
  verb->add_option("words", ranks->words, "-- and the verb with its arguments")->required();
  verb->callback([options, ranks, servers, &app, &chosen] {
    chosen.action = [options, ranks, servers, &app] {
      return launch_job(*options, *ranks, *servers, app);
    };
  });
  add_guard(app, chosen);
}

}  // namespace recmill::cli
