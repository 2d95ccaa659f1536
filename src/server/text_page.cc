// SPDX-License-Identifier: Apache-2.0
#include "server/text_page.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace recmill::server {
namespace {

constexpr int kTickMilliseconds = 100;
constexpr timeval kPatience{.tv_sec = 2, .tv_usec = 0};
constexpr size_t kMostOfRequest = 8 << 10;

Status failure(const std::string& address, const char* call) {
  return Status::Failed(address + ": " + call + ": " + std::strerror(errno));
}

Result<sockaddr_in> parse(const std::string& address) {
  const size_t colon = address.rfind(':');
  sockaddr_in at{};
  at.sin_family = AF_INET;
  const std::string host = address.substr(0, colon);
  const bool is_right =
      colon != std::string::npos &&
      inet_pton(AF_INET, host == "localhost" ? "127.0.0.1" : host.c_str(), &at.sin_addr) == 1;
  if (!is_right) return Status::BadRequest(address + " is not ADDRESS:PORT");
  at.sin_port = htons(static_cast<uint16_t>(std::atoi(address.c_str() + colon + 1)));
  return at;
}

void send_all(int descriptor, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t sent = ::send(descriptor, text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return;  // its loss
    at += static_cast<size_t>(std::max<ssize_t>(sent, 0));
  }
}

}  // namespace

Result<std::unique_ptr<TextPage>> TextPage::open(const std::string& address,
                                                 std::function<std::string()> text) {
  RECMILL_ASSIGN_OR_RETURN(sockaddr_in at, parse(address));
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return failure(address, "socket");
  const int on = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  socklen_t size = sizeof(at);
  auto* const where = reinterpret_cast<sockaddr*>(&at);
  if (bind(descriptor, where, size) != 0 || listen(descriptor, SOMAXCONN) != 0 ||
      getsockname(descriptor, where, &size) != 0) {
    Status status = failure(address, "listen");
    ::close(descriptor);
    return status;
  }
  return std::unique_ptr<TextPage>(new TextPage(descriptor, ntohs(at.sin_port), std::move(text)));
}

TextPage::TextPage(int descriptor, int port, std::function<std::string()> text)
    : descriptor_(descriptor), port_(port), text_(std::move(text)), thread_([this] { run(); }) {}

TextPage::~TextPage() {
  stop_ = true;
  thread_.join();
  ::close(descriptor_);
}

void TextPage::run() {
  while (!stop_) {
    pollfd waits{descriptor_, POLLIN, 0};
    if (poll(&waits, 1, kTickMilliseconds) <= 0) continue;
    const int asker = accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC);
    if (asker < 0) continue;
    answer(asker);
    ::close(asker);
  }
}

void TextPage::answer(int descriptor) const {
  for (const int limit : {SO_RCVTIMEO, SO_SNDTIMEO})
    setsockopt(descriptor, SOL_SOCKET, limit, &kPatience, sizeof(kPatience));
  std::string request;
  char piece[1024];
  while (request.find("\r\n\r\n") == std::string::npos && request.size() < kMostOfRequest) {
    const ssize_t got = recv(descriptor, piece, sizeof(piece), 0);
    if (got <= 0) return;
    request.append(piece, static_cast<size_t>(got));
  }
  if (!request.starts_with("GET "))
    return send_all(descriptor, "HTTP/1.0 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n");
  const std::string text = text_();
  send_all(descriptor,
           "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n"
           "Content-Length: " +
               std::to_string(text.size()) + "\r\n\r\n" + text);
}

}  // namespace recmill::server
