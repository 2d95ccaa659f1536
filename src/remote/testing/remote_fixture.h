// SPDX-License-Identifier: Apache-2.0
// Writers of a home at servers over a simulated network. Who asks has it act.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "remote/row_client.h"
#include "remote/testing/options_of_tables.h"
#include "remote/testing/simulated_network.h"
#include "table/embedding_table.h"

namespace recmill::remote::testing {

struct PumpedNetwork {
  SimulatedNetwork network;
  std::mutex mutex;  // of it and of all that it connects
};

/// Waits while the network acts.
class PumpedImages final : public ImageAccess {
 public:
  explicit PumpedImages(PumpedNetwork& of) : of_(of) {}
  RowClient* client = nullptr;

  Result<Message> ask(int server, Message message) override {
    std::unique_lock lock(of_.mutex);
    const int64_t number = client->call(server, std::move(message));
    while (true) {
      std::vector<RowClient::Reply> replies;
      client->poll_replies(replies);
      for (auto& reply : replies) {
        if (reply.number != number) continue;
        if (!reply.status.ok()) return reply.status;
        return std::move(reply.message);
      }
      of_.network.act();
      lock.unlock();
      lock.lock();
    }
  }
  bool may_write_below(const std::string&) const override { return false; }
  void release(int64_t step) override {
    std::lock_guard lock(of_.mutex);
    client->release(step);
  }

 private:
  PumpedNetwork& of_;
};

/// A writer, while which is polled the network acts.
class PumpedHome final : public table::RowHome {
 public:
  PumpedHome(PumpedNetwork& of, RowClientOptions options)
      : of_(of), images_(std::make_shared<PumpedImages>(of)) {
    options.images = images_;
    client_ = std::make_unique<RowClient>(std::move(options));
    images_->client = client_.get();
    of_.network.add(*client_);
  }

  Ticket fetch(std::span<const table::FetchedRows> rows, int64_t fence) override {
    std::lock_guard lock(of_.mutex);
    return client_->fetch(rows, fence);
  }
  Ticket put(std::span<const table::PutRows> rows, int64_t step) override {
    std::lock_guard lock(of_.mutex);
    return client_->put(rows, step);
  }
  Ticket cut(int64_t step, std::span<const table::PutRows> changed) override {
    std::lock_guard lock(of_.mutex);
    return client_->cut(step, changed);
  }
  void poll(std::vector<Answer>& answers) override {
    std::lock_guard lock(of_.mutex);
    for (int i = 0; i < 20; ++i) of_.network.act();
    client_->poll(answers);
  }
  void set_wake(std::function<void()> wake) override { client_->set_wake(std::move(wake)); }

 private:
  PumpedNetwork& of_;
  const std::shared_ptr<PumpedImages> images_;
  std::unique_ptr<RowClient> client_;
};

/// A fixture of row_home_contract.h.
template <int kServers, bool kBreaks>
class RemoteFixture {
 public:
  static constexpr bool kManyThreads = false;
  RemoteFixture(std::vector<table::EmbeddingTable>& tables, int writers, ThreadPool&, uint64_t seed)
      : of_{SimulatedNetwork(seed, kServers, kBreaks), {}} {
    RowClientOptions options = options_of(tables, writers, kServers);
    options.message_bytes = 100;
    options.message_rows = 1;
    for (options.rank = 0; options.rank < writers; ++options.rank)
      writers_.emplace_back(of_, options);
  }
  table::RowHome& writer(int number) { return writers_[static_cast<size_t>(number)]; }

 private:
  PumpedNetwork of_;
  std::deque<PumpedHome> writers_;
};

}  // namespace recmill::remote::testing
