// SPDX-License-Identifier: Apache-2.0
// The seam to a network: streams of messages. Arrow Flight is one (remote/flight); RDMA could be
// another.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "remote/message.h"

namespace recmill::remote {

/// Both directions of a connection, each in its order. One thread may send while another receives.
class MessageStream {
 public:
  virtual ~MessageStream() = default;
  /// Returns when the network has taken the message.
  virtual Status send(const Message& message) = 0;
  /// The next one, once it is there. An error ends the stream, and says why.
  virtual Result<Message> receive() = 0;
  /// Ends the stream: both calls return with an error. From any thread.
  virtual void cancel() = 0;
};

/// Whether HOST:PORT is this machine, which needs neither token nor TLS.
inline bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address.starts_with("localhost:") ||
         address.starts_with("[::1]:");
}

/// What is the same for both ends of a connection.
struct StreamSecurity {
  std::string token = {};  // that callers show; empty: none is asked for
  bool tls = false;
  std::string tls_certificate = {}, tls_key = {};  // of a server; PEM
  std::string tls_roots = {};                      // that a client trusts; PEM
};

/// Takes streams, each on a thread of its own, until it returns.
class StreamHandler {
 public:
  virtual ~StreamHandler() = default;
  virtual void serve(MessageStream& stream) = 0;
};

/// Listens while it lives. The end waits for handlers, whose streams it cancels.
class MessageServer {
 public:
  virtual ~MessageServer() = default;
  virtual int port() const = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  /// `address` is HOST:PORT. May return before the other end is known to be there.
  virtual Result<std::unique_ptr<MessageStream>> connect(const std::string& address,
                                                         const StreamSecurity& security) = 0;
  /// Port 0: any that is free.
  virtual Result<std::unique_ptr<MessageServer>> listen(const std::string& address,
                                                        const StreamSecurity& security,
                                                        StreamHandler& handler) = 0;
};

}  // namespace recmill::remote
