// SPDX-License-Identifier: Apache-2.0
// Clients and servers in one thread, and the connections between them, in an order that a seed
// draws.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "remote/row_client.h"
#include "remote/row_server.h"

namespace recmill::remote::testing {

/// Each connection keeps its order in both directions, and that is all. One may break: what it had
/// under way then comes to the server late, in part or not at all, beside the next one.
class SimulatedNetwork {
 public:
  SimulatedNetwork(uint64_t seed, int servers, bool breaks, const ServerChecks& checks = {});

  /// Connects it with all servers. It lives until it is removed.
  int add(RowClient& client);
  /// As when its process ends: its connections break.
  void remove(int client);
  /// Its rows are lost, and connections to it break.
  void restart(int server);

  /// What a server answers a guest at once.
  Message ask(int server, const Message& question);

  /// One thing happens, anywhere.
  void act();
  /// Nothing is under way, and nobody has anything to send.
  bool is_idle() const;

  RowServer& server(int number) { return *servers_[static_cast<size_t>(number)]; }
  int servers() const { return static_cast<int>(servers_.size()); }
  /// Of which the seconds are those that are told to clients and servers.
  double now = 0.0;
  int64_t broken = 0;  // connections

 private:
  struct Connection {
    int client = 0, server = 0;
    bool is_open = true;  // for the client
    std::deque<Message> up = {}, down = {};
  };

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  void connect(int client, int server);
  void cut_off(Connection& connection);
  void end(int64_t number);
  void take_out(int server);
  std::map<int64_t, Connection>::iterator draw();

  std::mt19937_64 random_;
  const bool breaks_;
  const ServerChecks checks_;
  std::vector<std::unique_ptr<RowServer>> servers_;
  int64_t instances_ = 0;
  std::map<int, RowClient*> clients_;
  int next_client_ = 0;
  std::map<int64_t, Connection> connections_;
  int64_t next_connection_ = 0;
};

}  // namespace recmill::remote::testing
