// SPDX-License-Identifier: Apache-2.0
#include "server/message_line.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>
#include <utility>

#include "base/json/json.h"

namespace recmill::server {
namespace {

constexpr size_t kMostKept = 1 << 20;  // bytes; more: the other side does not read any more
constexpr int kConnectMilliseconds = 3000;

Status system_failure(const char* call) {
  return Status::Failed(std::string(call) + ": " + std::strerror(errno));
}

/// The addresses of this machine, those of the loopback last.
Result<std::vector<std::string>> own_addresses() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return system_failure("getifaddrs");
  std::vector<std::string> names;
  for (const bool loopback : {false, true}) {
    for (const ifaddrs* at = all; at != nullptr; at = at->ifa_next) {
      if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
      if (((at->ifa_flags & IFF_LOOPBACK) != 0) != loopback || (at->ifa_flags & IFF_UP) == 0)
        continue;
      char text[INET_ADDRSTRLEN];
      const auto* address = reinterpret_cast<const sockaddr_in*>(at->ifa_addr);
      if (inet_ntop(AF_INET, &address->sin_addr, text, sizeof(text)) != nullptr)
        names.emplace_back(text);
    }
  }
  freeifaddrs(all);
  return names;
}

Result<MessageLine> connect_one(const std::string& address, int port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  if (inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1)
    return Status::Failed("'" + address + "' is no address");
  MessageLine line(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!line.open()) return system_failure("socket");
  if (connect(line.descriptor(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0)
    return line;
  if (errno != EINPROGRESS) return system_failure("connect");
  pollfd waits{line.descriptor(), POLLOUT, 0};
  if (poll(&waits, 1, kConnectMilliseconds) == 0) return Status::Failed("connect: no answer");
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(line.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == 0) return line;
  errno = error;
  return system_failure("connect");
}

}  // namespace

MessageLine::MessageLine(int descriptor) : descriptor_(descriptor) {
  const int on = 1;
  if (descriptor >= 0) setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

MessageLine::~MessageLine() {
  close();
}

MessageLine::MessageLine(MessageLine&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      incoming_(std::move(other.incoming_)),
      outgoing_(std::move(other.outgoing_)) {}

MessageLine& MessageLine::operator=(MessageLine&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(incoming_, other.incoming_);
  std::swap(outgoing_, other.outgoing_);
  return *this;
}

void MessageLine::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

void MessageLine::send(const Json& message) {
  if (!open()) return;
  outgoing_ += message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  flush();
}

void MessageLine::flush() {
  while (open() && !outgoing_.empty()) {
    const ssize_t sent = ::send(descriptor_, outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      outgoing_.erase(0, sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (outgoing_.size() > kMostKept) close();
      return;
    } else if (errno != EINTR) {
      close();
    }
  }
}

std::vector<Json> MessageLine::receive() {
  flush();
  char piece[4096];
  while (open()) {
    const ssize_t got = recv(descriptor_, piece, sizeof(piece), 0);
    if (got > 0) {
      incoming_.append(piece, got);
      if (incoming_.size() > kMostKept) close();
    } else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      break;
    } else if (got == 0 || errno != EINTR) {
      close();
    }
  }
  std::vector<Json> messages;
  size_t begin = 0;
  for (size_t end = 0; (end = incoming_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    Json message = Json::parse(incoming_.substr(begin, end - begin), nullptr, false);
    if (message.is_object()) messages.push_back(std::move(message));
  }
  incoming_.erase(0, begin);
  return messages;
}

Result<MessageListener> MessageListener::open() {
  MessageListener listener;
  listener.descriptor_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener.descriptor_ < 0) return system_failure("socket");
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof(any);
  auto* const address = reinterpret_cast<sockaddr*>(&any);
  if (bind(listener.descriptor_, address, size) != 0) return system_failure("bind");
  if (listen(listener.descriptor_, SOMAXCONN) != 0) return system_failure("listen");
  if (getsockname(listener.descriptor_, address, &size) != 0) return system_failure("getsockname");
  RECMILL_ASSIGN_OR_RETURN(const auto names, own_addresses());
  for (const std::string& name : names)
    listener.addresses_ += name + " " + std::to_string(ntohs(any.sin_port)) + " ";
  return listener;
}

MessageListener::~MessageListener() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

MessageListener::MessageListener(MessageListener&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), addresses_(std::move(other.addresses_)) {}

std::optional<MessageLine> MessageListener::accept() {
  const int descriptor = accept4(descriptor_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (descriptor < 0) return std::nullopt;
  return MessageLine(descriptor);
}

Result<MessageLine> connect_to(const std::string& addresses) {
  std::istringstream words(addresses);
  std::string address;
  int port = 0;
  Status last = Status::Failed("no address");
  while (words >> address >> port) {
    auto line = connect_one(address, port);
    if (line.ok()) return line;
    last = line.status().at(address);
  }
  return last;
}

}  // namespace recmill::server
