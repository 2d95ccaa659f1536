// SPDX-License-Identifier: Apache-2.0
#include "remote/testing/simulated_network.h"

#include <iterator>
#include <utility>

namespace recmill::remote::testing {

SimulatedNetwork::SimulatedNetwork(uint64_t seed, int servers, bool breaks,
                                   const ServerChecks& checks)
    : random_(seed), breaks_(breaks), checks_(checks) {
  for (int s = 0; s < servers; ++s)
    servers_.push_back(std::make_unique<RowServer>(++instances_, ServerOptions{checks_}));
}

int SimulatedNetwork::add(RowClient& client) {
  clients_[next_client_] = &client;
  for (int s = 0; s < servers(); ++s) connect(next_client_, s);
  return next_client_++;
}

void SimulatedNetwork::connect(int client, int server) {
  connections_[next_connection_++] = {client, server};
  clients_[client]->connected(server, now);
}

void SimulatedNetwork::cut_off(Connection& connection) {
  connection.is_open = false;
  connection.down.clear();
  ++broken;
  if (const auto client = clients_.find(connection.client); client != clients_.end())
    client->second->disconnected(connection.server, now);
}

void SimulatedNetwork::remove(int client) {
  clients_.erase(client);
  for (auto& [number, connection] : connections_)
    if (connection.client == client && connection.is_open) cut_off(connection);
}

void SimulatedNetwork::restart(int server) {
  servers_[static_cast<size_t>(server)] =
      std::make_unique<RowServer>(++instances_, ServerOptions{checks_});
  std::vector<int> clients;
  for (auto& [number, connection] : connections_) {
    if (connection.server != server) continue;
    if (connection.is_open && clients_.contains(connection.client))
      clients.push_back(connection.client);
    if (connection.is_open) cut_off(connection);
  }
  std::erase_if(connections_, [&](const auto& of) { return of.second.server == server; });
  for (const int client : clients) connect(client, server);
}

// The server hears of the end of a connection.
void SimulatedNetwork::end(int64_t number) {
  const int server = connections_[number].server;
  servers_[static_cast<size_t>(server)]->closed(number);
  connections_.erase(number);
}

void SimulatedNetwork::take_out(int server) {
  for (auto& outgoing : servers_[static_cast<size_t>(server)]->take_out()) {
    const auto connection = connections_.find(outgoing.to);
    if (connection != connections_.end() && connection->second.is_open)
      connection->second.down.push_back(std::move(outgoing.message));
  }
}

Message SimulatedNetwork::ask(int server, const Message& question) {
  constexpr int64_t kGuest = int64_t{1} << 40;
  RowServer& of = *servers_[static_cast<size_t>(server)];
  of.take(kGuest, {MessageKind::hello, 0, 0, -1, write_guest_greeting()}, now);
  of.take(kGuest, question, now);
  auto answers = of.take_out();
  of.closed(kGuest);
  // A fetch may wait for its fence.
  return answers.size() == 2 ? answers[1].message : Message{MessageKind::error};
}

std::map<int64_t, SimulatedNetwork::Connection>::iterator SimulatedNetwork::draw() {
  return std::next(connections_.begin(), below(std::ssize(connections_)));
}

void SimulatedNetwork::act() {
  now += 1e-3;
  if (connections_.empty()) return;
  const auto at = draw();
  const int64_t number = at->first;
  Connection& of = at->second;
  if (of.is_open && !clients_.contains(of.client)) of.is_open = false;
  RowClient* client = of.is_open ? clients_[of.client] : nullptr;
  if (!of.is_open && (of.up.empty() || below(4) == 0)) return end(number);
  switch (breaks_ && below(100) == 0 ? 3 : below(3)) {
    case 0:
      if (client == nullptr) return;
      if (auto message = client->next(of.server)) of.up.push_back(*std::move(message));
      return;
    case 1:
      if (of.up.empty()) return;
      servers_[static_cast<size_t>(of.server)]->take(number, of.up.front(), now);
      of.up.pop_front();
      return take_out(of.server);
    case 2:
      if (of.down.empty() || client == nullptr) return;
      client->take(of.server, of.down.front(), now);
      of.down.pop_front();
      return;
    default:
      if (client == nullptr) return;
      cut_off(of);
      connect(of.client, of.server);
  }
}

bool SimulatedNetwork::is_idle() const {
  for (const auto& [number, of] : connections_)
    if (of.is_open && (!of.up.empty() || !of.down.empty())) return false;
  for (const auto& [number, client] : clients_)
    if (client->is_busy() && client->failure().ok()) return false;
  return true;
}

}  // namespace recmill::remote::testing
