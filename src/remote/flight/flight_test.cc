// SPDX-License-Identifier: Apache-2.0
// Homes at servers over Arrow Flight on loopback: threads, sockets and all.
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "remote/flight/flight_library.h"
#include "remote/flight/test_certificate.h"
#include "remote/remote_home.h"
#include "remote/row_service.h"
#include "remote/testing/options_of_tables.h"
#include "remote/testing/patient_home.h"
#include "table/home/row_home_contract.h"

namespace recmill::remote {
namespace {

/// Servers of this process, each at a port of its own.
class Servers {
 public:
  explicit Servers(int count, const StreamSecurity& security = {}) {
    for (int s = 0; s < count; ++s) {
      services_.push_back(std::make_unique<RowService>(s + 1));
      auto server = (*flight_transport())->listen("127.0.0.1:0", security, *services_.back());
      EXPECT_TRUE(server.ok()) << server.status().message();
      servers_.push_back(*std::move(server));
      addresses.push_back("127.0.0.1:" + std::to_string(servers_.back()->port()));
    }
  }
  RowService& service(int number) { return *services_[static_cast<size_t>(number)]; }
  /// As when its process ends.
  void end(int number) { servers_[static_cast<size_t>(number)].reset(); }

  std::vector<std::string> addresses;

 private:
  std::vector<std::unique_ptr<RowService>> services_;
  std::vector<std::unique_ptr<MessageServer>> servers_;  // end first
};

TableSpec small_table() {
  TableSpec spec;
  spec.name = "t";
  spec.rows = 100;
  spec.dim = 4;
  spec.optimizer.kind = OptimizerKind::sgd;
  return spec;
}

RowClientOptions options_for(const Servers& servers, double deadline = 30.0) {
  RowClientOptions options;
  options.greeting.run = "run";
  options.greeting.servers = static_cast<int>(servers.addresses.size());
  options.greeting.tables = {small_table()};
  options.greeting.deadline = deadline;
  options.addresses = servers.addresses;
  return options;
}

template <int kServers>
struct FlightFixture {
  static constexpr bool kManyThreads = true;
  FlightFixture(std::vector<table::EmbeddingTable>& tables, int writers, ThreadPool&, uint64_t)
      : servers(kServers) {
    RowClientOptions options = testing::options_of(tables, writers, kServers);
    options.addresses = servers.addresses;
    for (options.rank = 0; options.rank < writers; ++options.rank)
      homes.emplace_back(options, **flight_transport(), std::chrono::microseconds(100));
  }
  table::RowHome& writer(int number) { return homes[static_cast<size_t>(number)].home(); }

  Servers servers;
  std::deque<testing::PatientHome> homes;
};

/// The message of a home that does not come about.
std::string failure_of(const RowClientOptions& options, const StreamSecurity& security) {
  RemoteHome home(options, **flight_transport(), security);
  return home.wait_until_begun().message();
}

TEST(Flight, asks_for_a_token_and_says_which_is_missing_or_wrong) {
  Servers servers(1, {.token = "secret"});
  const auto options = options_for(servers);
  const std::string of = "server 0 (" + servers.addresses[0] + "): ";
  EXPECT_EQ(failure_of(options, {.token = "secret"}), "");
  EXPECT_EQ(failure_of(options, {}), of + "the server asks for a token");
  EXPECT_EQ(failure_of(options, {.token = "secreT"}), of + "another token than the server's");
}

TEST(Flight, speaks_tls_with_who_trusts_its_certificate_alone) {
  const StreamSecurity tls = test_certificate();
  Servers servers(1, tls);
  const auto options = options_for(servers, /*deadline=*/0.5);
  EXPECT_EQ(failure_of(options, tls), "");
  EXPECT_NE(failure_of(options, {.tls = true}), "");
  EXPECT_NE(failure_of(options, {}), "");  // plain text
  Servers plain(1);
  EXPECT_NE(failure_of(options_for(plain, 0.5), tls), "");
}

TEST(Flight, a_server_that_nobody_has_started_is_waited_for_until_the_deadline) {
  Servers servers(1);
  auto options = options_for(servers, /*deadline=*/0.5);
  servers.end(0);
  const std::string message = failure_of(options, {});
  EXPECT_NE(message.find("cannot be reached for 0 seconds (lookahead.deadline): "),
            std::string::npos)
      << message;
}

TEST(Flight, a_server_that_ends_is_lost_at_its_deadline_and_ends_all_calls) {
  Servers servers(2);
  RemoteHome home(options_for(servers, /*deadline=*/0.5), **flight_transport(), {});
  ASSERT_TRUE(home.wait_until_begun().ok());
  table::HomeCaller caller(home);
  EXPECT_TRUE(caller.wait(home.put({}, 0)).status.ok());
  servers.end(1);
  const auto answer = caller.wait(home.put({}, 1));
  EXPECT_NE(answer.status.message().find("server 1"), std::string::npos) << answer.status.message();
  EXPECT_EQ(caller.wait(home.put({}, 2)).status.message(), answer.status.message());
}

TEST(Flight, another_run_is_refused_while_one_is_connected) {
  Servers servers(1);
  RemoteHome home(options_for(servers), **flight_transport(), {});
  ASSERT_TRUE(home.wait_until_begun().ok());
  auto other = options_for(servers);
  other.greeting.run = "other";
  EXPECT_EQ(failure_of(other, {}), "server 0 (" + servers.addresses[0] +
                                       "): the server has rows of run 'run', of which rank 0 is "
                                       "connected");
}

TEST(Flight, a_connection_ends_behind_the_error_of_a_greeting_that_is_refused) {
  Servers servers(1);
  auto stream = (*flight_transport())->connect(servers.addresses[0], {});
  ASSERT_TRUE(stream.ok());
  ASSERT_TRUE((*stream)->send({MessageKind::hello, 3, 0, 0, Bytes::text("{}")}).ok());
  const auto answer = (*stream)->receive();
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(answer->kind, MessageKind::error);
  EXPECT_EQ(answer->body.text(), "greeting: no key protocol");
  EXPECT_EQ((*stream)->receive().status().message(), "the connection has ended");
}

TEST(Flight, what_is_no_flight_is_refused_and_the_server_goes_on) {
  Servers servers(1);
  const auto address = servers.addresses[0];
  auto stream = (*flight_transport())->connect(address, {.tls = true});
  if (stream.ok()) {
    EXPECT_FALSE((*stream)->receive().ok());
  }
  EXPECT_EQ(failure_of(options_for(servers), {}), "");
}

TEST(Flight, a_library_of_another_build_or_none_is_one_line) {
  const auto missing = open_flight_library("librecmill_none.so");
  ASSERT_FALSE(missing.ok());
  EXPECT_TRUE(missing.status().message().starts_with("Arrow Flight: librecmill_none.so"))
      << missing.status().message();
}

}  // namespace
}  // namespace recmill::remote

namespace recmill::table {
namespace {
using OneFlightServer = remote::FlightFixture<1>;
using TwoFlightServers = remote::FlightFixture<2>;
INSTANTIATE_TYPED_TEST_SUITE_P(OneFlightServer, RowHomeContract, OneFlightServer);
INSTANTIATE_TYPED_TEST_SUITE_P(TwoFlightServers, RowHomeContract, TwoFlightServers);
}  // namespace
}  // namespace recmill::table
