// SPDX-License-Identifier: Apache-2.0
#include "server/launch.h"

#include <fmt/format.h>
#include <netdb.h>

#include <algorithm>

#include "server/child_process.h"
#include "server/session_folder.h"

namespace recmill::server {
namespace {

Status check_known(const std::vector<Host>& hosts, const std::string& path) {
  for (const Host& host : hosts) {
    addrinfo* found = nullptr;
    const int error = getaddrinfo(host.name.c_str(), nullptr, nullptr, &found);
    if (error != 0)
      return Status::BadRequest(fmt::format("{}:{}: host '{}' is unknown: {}", path, host.line,
                                            host.name, gai_strerror(error)));
    freeaddrinfo(found);
  }
  return {};
}

Result<std::vector<Host>> read_hosts(const LaunchOptions& options, Files& files) {
  if (options.hosts.empty()) return std::vector<Host>();
  RECMILL_ASSIGN_OR_RETURN(const std::string text, read_text(files, options.hosts));
  RECMILL_ASSIGN_OR_RETURN(auto hosts, parse_hosts(text, options.hosts));
  RECMILL_RETURN_IF_ERROR(check_known(hosts, options.hosts));
  if (room(hosts) < options.ranks)
    return Status::BadRequest(
        fmt::format("--ranks {}: {} has slots for {}", options.ranks, options.hosts, room(hosts)));
  return hosts;
}

/// Whether a host that calls itself `own` is the one that a file calls `listed`.
bool same_host(const std::string& listed, const std::string& own) {
  return listed == own || own.starts_with(listed + ".") || listed.starts_with(own + ".");
}

/// Ranks of the next start.
Result<int> next_ranks(const LaunchOptions& options, const LaunchPlan& plan) {
  const int wanted = options.resume_ranks > 0 ? options.resume_ranks : plan.ranks;
  const int most = options.hosts.empty() ? wanted : room(plan.hosts);
  if (most >= wanted) return wanted;
  if (options.resume_ranks > 0 || most == 0)
    return Status::Failed(
        fmt::format("the hosts that are left hold {} ranks, {} are wanted", most, wanted));
  return most;
}

}  // namespace

Status launch(const LaunchOptions& options, const LaunchSetting& setting) {
  RECMILL_ASSIGN_OR_RETURN(const std::string version, output_of({options.mpirun, "--version"}));
  const auto kind = mpi_kind(version);
  if (!kind.ok()) return kind.status().at(options.mpirun);
  RECMILL_ASSIGN_OR_RETURN(auto hosts, read_hosts(options, setting.files));
  adopt_orphans();
  RECMILL_ASSIGN_OR_RETURN(const SessionFolder folder, SessionFolder::make(setting.files));
  const GuardVariables& names = setting.variables;
  LaunchPlan plan{.mpirun = options.mpirun,
                  .kind = *kind,
                  .hosts = std::move(hosts),
                  .ranks = options.ranks,
                  .remote_shell = options.remote_shell,
                  .folder = folder.path(),
                  .inherited = {names.addresses, names.token, names.lease_seconds},
                  .program = {}};
  std::vector<std::string> words = options.words;
  bool has_begun = false;
  for (int restart = 0;; ++restart) {
    plan.program = options.program;
    plan.program.insert(plan.program.end(), words.begin(), words.end());
    JobAttempt attempt(plan, names, options.limits, setting.interrupts);
    const auto verdict = attempt.run();
    const bool lost = verdict.ok() && verdict->state == JobState::lost;
    if (lost) setting.say(verdict->why.message());
    attempt.end();
    RECMILL_RETURN_IF_ERROR(verdict.status());
    has_begun = has_begun || attempt.has_begun();
    if (!lost) return verdict->why;
    if (restart == options.restarts || attempt.interrupts() > 0) return verdict->why;
    std::erase_if(plan.hosts,
                  [&](const Host& host) { return same_host(host.name, verdict->lost_host); });
    const int before = plan.ranks;
    RECMILL_ASSIGN_OR_RETURN(plan.ranks, next_ranks(options, plan));
    words = restart_words(options.words, has_begun, plan.ranks != options.ranks);
    setting.say(fmt::format("{} with {} rank{}{}, restart {} of {}",
                            has_begun ? "goes on from the newest checkpoint" : "starts again",
                            plan.ranks, plan.ranks == 1 ? "" : "s",
                            plan.ranks == before ? "" : fmt::format(" instead of {}", before),
                            restart + 1, options.restarts));
  }
}

}  // namespace recmill::server
