// SPDX-License-Identifier: Apache-2.0
#include "server/launch.h"

#include <fmt/format.h>
#include <netdb.h>

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
  for (const Role& role : options.roles) {
    if (role.kind == RoleKind::ranks && room(hosts) < role.count)
      return Status::BadRequest(
          fmt::format("--ranks {}: {} has slots for {}", role.count, options.hosts, room(hosts)));
  }
  return hosts;
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
  return Supervisor(JobWatch(options.roles, std::move(hosts)),
                    {.plan = {.mpirun = options.mpirun,
                              .kind = *kind,
                              .hosts = {},
                              .remote_shell = options.remote_shell,
                              .folder = folder.path(),
                              .inherited = {names.addresses, names.token, names.lease_seconds},
                              .program = {}},
                     .guard = options.guard,
                     .variables = names,
                     .interrupts = setting.interrupts,
                     .say = setting.say})
      .run();
}

}  // namespace recmill::server
