// SPDX-License-Identifier: Apache-2.0
#include "bench/server/server_cached_bench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <climits>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "bench/alternation.h"
#include "bench/benches.h"
#include "bench/cached/cached_ways.h"
#include "comm/gather_values.h"
#include "remote/flight/flight_library.h"
#include "remote/remote_home.h"
#include "remote/row_service.h"
#include "store/cached/ranks/sharded_cached_store.h"

namespace recmill::bench {
namespace {

constexpr int kTrainers = 4, kServers = 2, kWays = 3;
constexpr const char* kName = "kaggle_zipf_1.2_4_trainers_2_servers";

using Addresses = std::vector<std::vector<std::string>>;  // [ways][servers]

/// A server of each way, until the trainers have gone.
Status serve(Communicator& all) {
  RECMILL_ASSIGN_OR_RETURN(remote::Transport * transport, remote::flight_transport());
  std::vector<std::unique_ptr<remote::RowService>> services;
  std::vector<std::unique_ptr<remote::MessageServer>> servers;
  // Where ranks share no memory they are hosts, which know each other by name.
  std::string said = "127.0.0.1";
  if (!all.shares_memory()) {
    said.resize(HOST_NAME_MAX + 1);
    if (gethostname(said.data(), said.size()) != 0) return Status::Failed("gethostname fails");
    said.resize(said.find('\0'));
  }
  for (int way = 0; way < kWays; ++way) {
    services.push_back(std::make_unique<remote::RowService>(way + 1));
    RECMILL_ASSIGN_OR_RETURN(auto server, transport->listen("0.0.0.0:0", {}, *services.back()));
    said += " " + std::to_string(server->port());
    servers.push_back(std::move(server));
  }
  RECMILL_RETURN_IF_ERROR(all.all_gather(std::as_bytes(std::span(said))).status());
  return all.barrier();
}

Result<Addresses> addresses_of(Communicator& all) {
  RECMILL_ASSIGN_OR_RETURN(const Received received, all.all_gather({}));
  Addresses addresses(kWays);
  for (int server = kTrainers; server < kTrainers + kServers; ++server) {
    const auto bytes = received.from(server);
    std::istringstream said(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    std::string host, port;
    said >> host;
    for (auto& of_way : addresses) {
      said >> port;
      of_way.push_back(host + ":" + port);
    }
  }
  return addresses;
}

Result<std::shared_ptr<remote::RemoteHome>> connect(const CachedWays& of, int rank,
                                                    const std::vector<std::string>& servers,
                                                    remote::Transport& transport) {
  remote::RowClientOptions options;
  options.greeting.run = "bench";
  options.greeting.ranks = kTrainers;
  options.greeting.servers = kServers;
  options.greeting.seed = 1;
  options.greeting.tables = of.stream().model.tables;
  options.rank = options.image_share = rank;
  options.image_shares = kTrainers;
  options.addresses = servers;
  auto home = std::make_shared<remote::RemoteHome>(options, transport, remote::StreamSecurity{});
  RECMILL_RETURN_IF_ERROR(home->wait_until_begun());
  return home;
}

struct Rival {
  const char* label;
  CacheDesign design;
  int64_t lookahead, prefetch;
};
// Without lookahead rows are fetched once a step, distinct, and put back behind it.
constexpr Rival kRivals[kWays] = {
    {"forward", CacheDesign::forward, CachedWays::kLookahead, CachedWays::kPrefetch},
    {"lrpp", CacheDesign::lrpp, CachedWays::kLookahead, CachedWays::kPrefetch},
    {"no_cache", CacheDesign::forward, 0, 0}};

void report(const CachedWays& of, const std::deque<CachedWay>& ways,
            const std::vector<int64_t>& bytes, const BenchSink& sink) {
  const CachedWay& none = ways.back();
  for (size_t w = 0; w < ways.size(); ++w) {
    BenchLine line;
    line.bench = "server";
    line.name = kName;
    line.metric = fmt::format("time_per_batch_{}", ways[w].label);
    line.value = 1e3 * median(ways[w].seconds);
    line.unit = "ms";
    line.foreign_load = of.foreign_load();
    if (&ways[w] != &none) {
      line.rival = none.label;
      line.ratio = ratio_of({ways[w].seconds, none.seconds, of.foreign_load()});
    }
    sink(line);
    line.rival = "";
    line.ratio = {};
    line.metric = fmt::format("bytes_per_batch_{}", ways[w].label);
    line.value = static_cast<double>(bytes[w]) / static_cast<double>(ways[w].trained);
    line.unit = "bytes";
    sink(line);
  }
}

Status train(const BenchOptions& options, Communicator& all, Communicator& trainers,
             const BenchSink& sink) {
  RECMILL_ASSIGN_OR_RETURN(const Addresses addresses, addresses_of(all));
  RECMILL_ASSIGN_OR_RETURN(remote::Transport * transport, remote::flight_transport());
  RECMILL_ASSIGN_OR_RETURN(const auto of, CachedWays::make(options, trainers));
  std::vector<std::shared_ptr<remote::RemoteHome>> homes;
  for (size_t w = 0; w < kWays; ++w) {
    // Rank 0 opens the run at all servers before the others greet.
    for (const bool first : {true, false}) {
      if ((trainers.rank() == 0) == first) {
        RECMILL_ASSIGN_OR_RETURN(auto home,
                                 connect(*of, trainers.rank(), addresses[w], *transport));
        homes.push_back(std::move(home));
      }
      RECMILL_RETURN_IF_ERROR(trainers.barrier());
    }
    CachedWay& way = of->add(kRivals[w].label);
    store::CacheHomeRows rows(homes.back());
    rows.is_shared = true;
    RECMILL_ASSIGN_OR_RETURN(way.store, store::ShardedCachedStore::create(
                                            of->stream().model, 1, rows, trainers, of->pool()));
    RECMILL_RETURN_IF_ERROR(
        of->begin_planned(way, kRivals[w].design, kRivals[w].lookahead, kRivals[w].prefetch));
  }
  RECMILL_RETURN_IF_ERROR(of->run());
  std::vector<int64_t> bytes;  // [ways]
  for (const auto& home : homes) {
    RECMILL_ASSIGN_OR_RETURN(const auto of_ranks, gather_values(home->bytes(), trainers));
    bytes.push_back(std::accumulate(of_ranks.begin(), of_ranks.end(), int64_t{0}));
  }
  if (trainers.rank() == 0) report(*of, of->ways(), bytes, sink);
  return {};
}

}  // namespace

Status run_server_cached_bench(const BenchOptions& options, const BenchSink& sink) {
  auto all = options.world->communicator(kTrainers + kServers);
  if (!all.ok() || !options.wants(kName)) return {};  // too few processes
  RECMILL_ASSIGN_OR_RETURN(const auto trainers, options.world->communicator(kTrainers));
  if (*all == nullptr) return {};
  if (trainers == nullptr) return serve(**all);
  const Status status = train(options, **all, *trainers, sink);
  if (!status.ok()) trainers->abort(status);
  RECMILL_RETURN_IF_ERROR(status);
  return (*all)->barrier();
}

}  // namespace recmill::bench
