// SPDX-License-Identifier: Apache-2.0
// JSON objects, one a line, over a TCP connection between the supervisor of a job and its guards.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json/json_fwd.h"
#include "base/status.h"

namespace recmill::server {

/// One end of a connection. Never waits: what the other side does not take is kept, up to a limit.
class MessageLine {
 public:
  MessageLine() = default;
  /// Takes the descriptor.
  explicit MessageLine(int descriptor);
  ~MessageLine();
  MessageLine(MessageLine&& other) noexcept;
  MessageLine& operator=(MessageLine&& other) noexcept;

  int descriptor() const { return descriptor_; }  // -1: closed
  bool open() const { return descriptor_ >= 0; }
  void close();

  void send(const Json& message);
  /// What has come since. Closes when the other side has.
  std::vector<Json> receive();

 private:
  void flush();

  int descriptor_ = -1;
  std::string incoming_, outgoing_;
};

/// Takes connections at any address of this machine.
class MessageListener {
 public:
  static Result<MessageListener> open();
  ~MessageListener();
  MessageListener(MessageListener&& other) noexcept;
  MessageListener& operator=(MessageListener&&) = delete;

  int descriptor() const { return descriptor_; }
  /// "ADDRESS PORT ADDRESS PORT ...": where other hosts may reach it, and last this one's own.
  const std::string& addresses() const { return addresses_; }
  /// A connection that waits to be taken; none: there is none.
  std::optional<MessageLine> accept();

 private:
  MessageListener() = default;
  int descriptor_ = -1;
  std::string addresses_;
};

/// Tries each of addresses() in turn, a few seconds each.
Result<MessageLine> connect_to(const std::string& addresses);

}  // namespace recmill::server
