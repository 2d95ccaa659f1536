// SPDX-License-Identifier: Apache-2.0
#include "bench/server/raw_rows.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

namespace recmill::bench {
namespace {

constexpr int kWaitMilliseconds = 10'000;

Status failure(const char* call) {
  return Status::Failed(std::string("bench server: ") + call + ": " + std::strerror(errno));
}

/// Waits in calls, and sends at once.
Status prepare(int descriptor) {
  const int on = 1;
  if (fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK) != 0 ||
      setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
    return failure("setsockopt");
  return {};
}

Status send_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR) return failure("send");
    bytes = bytes.subspan(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  }
  return {};
}

/// False: the other end has gone before the first byte.
Result<bool> receive_all(int descriptor, std::span<std::byte> bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t count = ::recv(descriptor, bytes.data() + at, bytes.size() - at, 0);
    if (count == 0 && at == 0) return false;
    if (count == 0) return Status::Failed("bench server: a TCP connection was closed");
    if (count < 0 && errno != EINTR) return failure("recv");
    at += static_cast<size_t>(std::max<ssize_t>(count, 0));
  }
  return true;
}

}  // namespace

Result<RawRowServer> RawRowServer::listen() {
  RECMILL_ASSIGN_OR_RETURN(auto listener, server::MessageListener::open());
  return RawRowServer(std::move(listener));
}

Status RawRowServer::serve(std::span<const float> rows, int64_t dim) {
  std::optional<server::MessageLine> line;
  while (!(line = listener_.accept())) {
    pollfd waits{listener_.descriptor(), POLLIN, 0};
    if (poll(&waits, 1, kWaitMilliseconds) <= 0) return failure("poll");
  }
  const int descriptor = line->descriptor();
  RECMILL_RETURN_IF_ERROR(prepare(descriptor));
  std::vector<int64_t> ids;
  std::vector<float> records;
  while (true) {
    int64_t count = 0;
    RECMILL_ASSIGN_OR_RETURN(const bool is_there,
                             receive_all(descriptor, std::as_writable_bytes(std::span(&count, 1))));
    if (!is_there) return {};
    ids.resize(static_cast<size_t>(count));
    records.resize(static_cast<size_t>(count * dim));
    RECMILL_RETURN_IF_ERROR(
        receive_all(descriptor, std::as_writable_bytes(std::span(ids))).status());
    for (int64_t i = 0; i < count; ++i)
      std::copy_n(rows.data() + ids[static_cast<size_t>(i)] * dim, dim, records.data() + i * dim);
    RECMILL_RETURN_IF_ERROR(send_all(descriptor, std::as_bytes(std::span(records))));
  }
}

Result<RawRowClient> RawRowClient::connect(const std::string& addresses) {
  RECMILL_ASSIGN_OR_RETURN(auto line, server::connect_to(addresses));
  RECMILL_RETURN_IF_ERROR(prepare(line.descriptor()));
  return RawRowClient(std::move(line));
}

Result<std::string> RawRowClient::server_host() const {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  if (getpeername(line_.descriptor(), reinterpret_cast<sockaddr*>(&peer), &size) != 0)
    return failure("getpeername");
  char text[INET6_ADDRSTRLEN] = {};
  if (peer.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(peer).sin_addr, text, sizeof(text));
    return std::string(text);
  }
  inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr, text, sizeof(text));
  return "[" + std::string(text) + "]";
}

Status RawRowClient::fetch(std::span<const int64_t> rows, std::span<std::byte> records) {
  const auto count = static_cast<int64_t>(rows.size());
  RECMILL_RETURN_IF_ERROR(send_all(line_.descriptor(), std::as_bytes(std::span(&count, 1))));
  RECMILL_RETURN_IF_ERROR(send_all(line_.descriptor(), std::as_bytes(rows)));
  RECMILL_ASSIGN_OR_RETURN(const bool is_there, receive_all(line_.descriptor(), records));
  return is_there ? Status() : Status::Failed("bench server: a TCP connection was closed");
}

}  // namespace recmill::bench
