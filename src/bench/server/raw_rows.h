// SPDX-License-Identifier: Apache-2.0
// Rows by a bare TCP connection: what is fetched in the least possible way.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "server/message_line.h"

namespace recmill::bench {

/// Sends rows of an array to one asker, until that goes away.
class RawRowServer {
 public:
  /// `rows` [count][dim] outlive it.
  static Result<RawRowServer> listen();
  const std::string& addresses() const { return listener_.addresses(); }
  /// Returns when the asker has gone.
  Status serve(std::span<const float> rows, int64_t dim);

 private:
  explicit RawRowServer(server::MessageListener listener) : listener_(std::move(listener)) {}
  server::MessageListener listener_;
};

class RawRowClient {
 public:
  static Result<RawRowClient> connect(const std::string& addresses);
  /// Where the server is: an address of the network.
  Result<std::string> server_host() const;
  /// records [rows][dim]
  Status fetch(std::span<const int64_t> rows, std::span<std::byte> records);

 private:
  explicit RawRowClient(server::MessageLine line) : line_(std::move(line)) {}
  server::MessageLine line_;
};

}  // namespace recmill::bench
