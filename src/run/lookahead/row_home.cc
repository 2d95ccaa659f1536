// SPDX-License-Identifier: Apache-2.0
#include "run/lookahead/row_home.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <span>
#include <string>
#include <utility>

#include "base/split_mix.h"
#include "remote/flight/flight_library.h"
#include "remote/remote_home.h"
#include "remote/secret.h"
#include "run/lookahead/run_cache.h"
#include "store/cached/ranks/home_ranks.h"
#include "store/tables/table_rows.h"
#include "table/home/embedded_home.h"

namespace recmill::train {
namespace {

using remote::RemoteHome;

/// What rank 0 says to all.
Result<std::string> text_of_rank_0(const std::string& own, Communicator& communicator) {
  RECMILL_ASSIGN_OR_RETURN(const Received received,
                           communicator.all_gather(std::as_bytes(std::span(own))));
  const auto bytes = received.from(0);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

/// Another one for each start: servers take no other run while this one is connected.
std::string new_run(const ResolvedRun& run) {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  const auto number =
      split_mix(static_cast<uint64_t>(now) ^ split_mix(static_cast<uint64_t>(getpid())));
  return fmt::format("{}-{:012x}", run.options.name, number >> 16);
}

Result<std::shared_ptr<table::RowHome>> connect(const remote::RowClientOptions& options,
                                                const remote::StreamSecurity& security) {
  RECMILL_ASSIGN_OR_RETURN(remote::Transport * transport, remote::flight_transport());
  auto home = std::make_shared<RemoteHome>(options, *transport, security);
  RECMILL_RETURN_IF_ERROR(home->wait_until_begun());
  return std::shared_ptr<table::RowHome>(std::move(home));
}

Result<std::shared_ptr<table::RowHome>> make_remote_home(const ResolvedRun& run,
                                                         Communicator& communicator, Files& files) {
  const LookaheadOptions& of = run.options.lookahead;
  remote::StreamSecurity security;
  RECMILL_ASSIGN_OR_RETURN(security.token,
                           remote::read_secret("lookahead.token_file", of.token_file, files));
  RECMILL_ASSIGN_OR_RETURN(security.tls_roots,
                           remote::read_secret("lookahead.tls_ca", of.tls_ca, files));
  security.tls = !of.tls_ca.empty();
  remote::RowClientOptions options;
  RECMILL_ASSIGN_OR_RETURN(options.greeting.run, text_of_rank_0(new_run(run), communicator));
  options.greeting.ranks = communicator.ranks();
  options.greeting.servers = static_cast<int>(of.servers.size());
  options.greeting.deadline = of.deadline;
  options.greeting.seed = static_cast<uint64_t>(run.options.train.seed);
  options.greeting.tables = run.spec.tables;
  options.rank = options.image_share = communicator.rank();
  options.image_shares = communicator.ranks();
  options.addresses = of.servers;
  // Rank 0 opens the run at all servers before the others greet.
  Result<std::shared_ptr<table::RowHome>> home = std::shared_ptr<table::RowHome>();
  if (communicator.rank() == 0) home = connect(options, security);
  RECMILL_ASSIGN_OR_RETURN(const std::string failure,
                           text_of_rank_0(home.status().message(), communicator));
  if (!failure.empty()) return Status::Failed("lookahead.servers: " + failure);
  if (communicator.rank() > 0) home = connect(options, security);
  if (!home.ok()) return home.status().at("lookahead.servers");
  return home;
}

}  // namespace

Result<std::shared_ptr<table::RowHome>> make_row_home(const ResolvedRun& run,
                                                      Communicator& communicator, ThreadPool& pool,
                                                      Files& files) {
  if (has_servers(run)) return make_remote_home(run, communicator, files);
  const store::HomeRanks homes(run.spec, communicator.ranks());
  RECMILL_ASSIGN_OR_RETURN(
      auto tables, store::create_tables(run.spec, static_cast<uint64_t>(run.options.train.seed),
                                        homes.shares(communicator.rank()), pool));
  return table::make_embedded_home(std::move(tables), pool);
}

}  // namespace recmill::train
