// SPDX-License-Identifier: Apache-2.0
// `bench server`: rows of an embedding server, beside a bare TCP connection.
#include <fmt/format.h>
#include <unistd.h>

#include <functional>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "bench/alternation.h"
#include "bench/benches.h"
#include "bench/server/raw_rows.h"
#include "bench/server/server_cached_bench.h"
#include "comm/gather_values.h"
#include "remote/flight/flight_library.h"
#include "remote/flight/test_certificate.h"
#include "remote/remote_home.h"
#include "remote/row_service.h"
#include "table/home/home_caller.h"

namespace recmill::bench {
namespace {

constexpr int64_t kRows = 500'000, kDim = 48, kFetched = 20'000, kBatches = 16;

TableSpec table() {
  TableSpec spec;
  spec.name = "rows";
  spec.rows = kRows;
  spec.dim = kDim;
  spec.optimizer.kind = OptimizerKind::sgd;
  return spec;
}

float value_of(int64_t row, int64_t element) {
  return static_cast<float>(row * kDim + element);
}

/// By which a row is found out.
std::vector<float> all_rows() {
  std::vector<float> rows(kRows * kDim);
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t e = 0; e < kDim; ++e) rows[row * kDim + e] = value_of(row, e);
  return rows;
}

std::vector<std::vector<int64_t>> batches() {
  std::vector<std::vector<int64_t>> all;
  const Random random(3, Purpose::test);
  for (int64_t batch = 0; batch < kBatches; ++batch) {
    auto& rows = all.emplace_back();
    for (int64_t i = 0; i < kFetched; ++i)
      rows.push_back(static_cast<int64_t>(random.below(kRows, batch, i)));
  }
  return all;
}

/// Rank 1: servers of each kind, until rank 0 has gone.
Status serve(Communicator& both) {
  const auto rows = all_rows();
  RECMILL_ASSIGN_OR_RETURN(auto raw, RawRowServer::listen());
  RECMILL_ASSIGN_OR_RETURN(remote::Transport * transport, remote::flight_transport());
  remote::RowService plain(1), tls(2);
  RECMILL_ASSIGN_OR_RETURN(const auto plain_server, transport->listen("0.0.0.0:0", {}, plain));
  RECMILL_ASSIGN_OR_RETURN(const auto tls_server,
                           transport->listen("0.0.0.0:0", remote::test_certificate(), tls));
  const std::string said =
      fmt::format("{} {} {}", plain_server->port(), tls_server->port(), raw.addresses());
  RECMILL_RETURN_IF_ERROR(both.all_gather(std::as_bytes(std::span(said))).status());
  return raw.serve(rows, kDim);
}

/// A home at a server, which has all rows.
class Home {
 public:
  Home(const std::string& address, const remote::StreamSecurity& security, remote::Transport& over)
      : home_(options(address), over, security), caller_(home_) {}

  Status open() {
    RECMILL_RETURN_IF_ERROR(home_.wait_until_begun());
    constexpr int64_t kAtOnce = 20'000;
    const auto rows = all_rows();
    std::vector<int64_t> named(kAtOnce);
    for (int64_t first = 0; first < kRows; first += kAtOnce) {
      std::iota(named.begin(), named.end(), first);
      const table::PutRows list{
          0, named, std::as_bytes(std::span(rows)).subspan(first * kDim * 4, kAtOnce * kDim * 4)};
      RECMILL_RETURN_IF_ERROR(caller_.wait(home_.put({&list, 1}, step_++)).status);
    }
    return {};
  }
  Status fetch(std::span<const int64_t> rows, std::span<std::byte> records) {
    const table::FetchedRows list{0, rows, records};
    return caller_.wait(home_.fetch({&list, 1}, step_ - 1)).status;
  }

 private:
  static remote::RowClientOptions options(const std::string& address) {
    remote::RowClientOptions of;
    of.greeting.run = "bench";
    of.greeting.tables = {table()};
    of.addresses = {address};
    return of;
  }
  remote::RemoteHome home_;
  table::HomeCaller caller_;
  int64_t step_ = 0;
};

using Fetch = std::function<Status(std::span<const int64_t> rows, std::span<std::byte> records)>;

Status check(const std::string& way, const Fetch& fetch, std::span<const int64_t> rows) {
  std::vector<float> records(kFetched * kDim);
  RECMILL_RETURN_IF_ERROR(fetch(rows, std::as_writable_bytes(std::span(records))));
  for (int64_t i = 0; i < kFetched; ++i)
    for (int64_t e = 0; e < kDim; ++e)
      if (records[i * kDim + e] != value_of(rows[i], e))
        return Status::Failed("bench server: " + way + " gives another row");
  return {};
}

/// Rank 0: fetches in turns. The bare connection is the limit, and the rival.
Status ask(Communicator& both, const std::vector<pid_t>& pids, const BenchOptions& options,
           const BenchSink& sink) {
  RECMILL_ASSIGN_OR_RETURN(const Received received, both.all_gather({}));
  const auto bytes = received.from(1);
  std::istringstream said(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  std::string plain_port, tls_port, addresses;
  said >> plain_port >> tls_port;
  std::getline(said >> std::ws, addresses);
  RECMILL_ASSIGN_OR_RETURN(auto raw, RawRowClient::connect(addresses));
  RECMILL_ASSIGN_OR_RETURN(const std::string host, raw.server_host());
  RECMILL_ASSIGN_OR_RETURN(remote::Transport * transport, remote::flight_transport());
  const bool is_here = both.shares_memory();
  const std::string where = is_here ? "one_host" : "hosts";
  Home plain(host + ":" + plain_port, {}, *transport);
  RECMILL_RETURN_IF_ERROR(plain.open());
  std::vector<std::pair<std::string, Fetch>> ways{
      {"raw_tcp", [&](auto rows, auto records) { return raw.fetch(rows, records); }},
      {"flight", [&](auto rows, auto records) { return plain.fetch(rows, records); }}};
  std::optional<Home> tls;
  if (is_here) {  // whose name the certificate has
    tls.emplace("127.0.0.1:" + tls_port, remote::test_certificate(), *transport);
    RECMILL_RETURN_IF_ERROR(tls->open());
    ways.emplace_back("flight_tls",
                      [&](auto rows, auto records) { return tls->fetch(rows, records); });
  }
  const auto all = batches();
  std::vector<std::byte> records(kFetched * kDim * 4);
  std::vector<Contender> contenders;
  for (const auto& [name, fetch] : ways) {
    for (const auto& rows : all) RECMILL_RETURN_IF_ERROR(check(name, fetch, rows));
    contenders.push_back(
        [&all, &records, &fetch](std::span<const int64_t> order) -> Result<double> {
          const Stopwatch watch;
          for (const int64_t batch : order)
            RECMILL_RETURN_IF_ERROR(fetch(all[static_cast<size_t>(batch)], records));
          return watch.seconds();
        });
  }
  AlternationOptions alternation;
  alternation.batches = kBatches;
  alternation.pairs = options.pairs;
  alternation.own = pids;
  RECMILL_ASSIGN_OR_RETURN(const Turns turns, take_turns(contenders, alternation));
  for (size_t way = 1; way < ways.size(); ++way) {
    const Timing timing = turns.timing(way, 0);
    BenchLine line;
    line.bench = "server";
    line.name = fmt::format("{}_fetch_{}x{}_{}", ways[way].first, kFetched, kDim, where);
    line.metric = "time_per_fetch";
    line.value = median(timing.ours) * 1e3;
    line.unit = "ms";
    line.rival = "raw_tcp";
    line.ratio = ratio_of(timing);
    line.limit = median(timing.rivals) * 1e3;
    line.of_limit = line.limit / line.value;
    line.foreign_load = timing.foreign_load;
    sink(line);
  }
  return {};
}

}  // namespace

Status run_server_bench(const BenchOptions& options, const BenchSink& sink) {
  RECMILL_RETURN_IF_ERROR(run_server_cached_bench(options, sink));
  if (!options.wants("fetch")) return {};
  const auto both_or = options.world->communicator(2);
  if (!both_or.ok())
    return Status::BadRequest(
        "bench server: needs two processes: recmill launch --ranks 2 -- bench server");
  const std::unique_ptr<Communicator>& both = *both_or;
  if (both == nullptr) return {};
  RECMILL_ASSIGN_OR_RETURN(const auto pids, gather_values(getpid(), *both));
  return both->rank() == 0 ? ask(*both, pids, options, sink) : serve(*both);
}

}  // namespace recmill::bench
