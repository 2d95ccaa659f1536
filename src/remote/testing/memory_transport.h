// SPDX-License-Identifier: Apache-2.0
// Streams within a process.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "remote/stream.h"

namespace recmill::remote::testing {

/// Addresses are names. Tokens and TLS are not looked at.
class MemoryTransport final : public Transport {
 public:
  Result<std::unique_ptr<MessageStream>> connect(const std::string& address,
                                                 const StreamSecurity&) override {
    std::lock_guard lock(mutex_);
    const auto server = servers_.find(address);
    if (server == servers_.end()) return Status::Failed("nobody listens at " + address);
    return server->second->take();
  }

  Result<std::unique_ptr<MessageServer>> listen(const std::string& address, const StreamSecurity&,
                                                StreamHandler& handler) override {
    std::lock_guard lock(mutex_);
    auto server = std::make_unique<Server>(*this, address, handler);
    servers_[address] = server.get();
    return std::unique_ptr<MessageServer>(std::move(server));
  }

  /// All streams end; those who lost theirs may connect again.
  void cut_off() {
    std::lock_guard lock(mutex_);
    for (const auto& [address, server] : servers_) server->cut_off();
  }

 private:
  /// Both directions of a stream.
  struct Wire {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Message> ways[2];
    bool is_cut = false;

    void cut() {
      std::lock_guard lock(mutex);
      is_cut = true;
      changed.notify_all();
    }
  };

  class End final : public MessageStream {
   public:
    End(std::shared_ptr<Wire> wire, int out) : wire_(std::move(wire)), out_(out) {}
    ~End() override { wire_->cut(); }
    Status send(const Message& message) override {
      std::lock_guard lock(wire_->mutex);
      if (wire_->is_cut) return Status::Failed("cut off");
      wire_->ways[out_].push_back(message);
      wire_->changed.notify_all();
      return {};
    }
    Result<Message> receive() override {
      std::unique_lock lock(wire_->mutex);
      auto& way = wire_->ways[1 - out_];
      wire_->changed.wait(lock, [&] { return wire_->is_cut || !way.empty(); });
      if (wire_->is_cut) return Status::Failed("cut off");
      Message message = std::move(way.front());
      way.pop_front();
      return message;
    }
    void cancel() override { wire_->cut(); }

   private:
    const std::shared_ptr<Wire> wire_;
    const int out_;
  };

  class Server final : public MessageServer {
   public:
    Server(MemoryTransport& of, std::string address, StreamHandler& handler)
        : of_(of), address_(std::move(address)), handler_(handler) {}
    ~Server() override {
      {
        std::lock_guard lock(of_.mutex_);
        of_.servers_.erase(address_);
        cut_off();
      }
      for (std::thread& thread : threads_) thread.join();
    }
    int port() const override { return 0; }

    std::unique_ptr<MessageStream> take() {
      auto wire = std::make_shared<Wire>();
      wires_.push_back(wire);
      threads_.emplace_back([this, wire] {
        End stream(wire, 1);
        handler_.serve(stream);
      });
      return std::make_unique<End>(wire, 0);
    }
    void cut_off() {
      for (const auto& wire : wires_) wire->cut();
      wires_.clear();
    }

   private:
    MemoryTransport& of_;
    const std::string address_;
    StreamHandler& handler_;
    std::vector<std::shared_ptr<Wire>> wires_;
    std::vector<std::thread> threads_;
  };

  std::mutex mutex_;  // of servers, too
  std::map<std::string, Server*> servers_;
};

}  // namespace recmill::remote::testing
