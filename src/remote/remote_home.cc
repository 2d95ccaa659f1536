// SPDX-License-Identifier: Apache-2.0
#include "remote/remote_home.h"

#include <algorithm>
#include <chrono>
#include <shared_mutex>
#include <utility>

namespace recmill::remote {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr auto kGoodbye = std::chrono::seconds(5);

int64_t bytes_of(const Message& message) {
  return static_cast<int64_t>(sizeof(MessageHeader) + message.body.size());
}

}  // namespace

/// Something may be there to be sent.
template <class Body>
auto RemoteHome::locked(const Body& body) {
  std::lock_guard lock(mutex_);
  changed_.notify_all();
  return body();
}

/// What images hold on to: the home, while it is there.
class RemoteHome::Access final : public ImageAccess {
 public:
  Result<Message> ask(int server, Message message) override {
    std::shared_lock lock(mutex_);
    if (home_ == nullptr) return Status::Failed("an image is read after its home has ended");
    return home_->ask(server, std::move(message));
  }
  bool may_write_below(const std::string& folder) const override {
    std::shared_lock lock(mutex_);
    return home_ != nullptr &&
           home_->locked([&] { return home_->client_.may_write_below(folder); });
  }
  void release(int64_t step) override {
    std::shared_lock lock(mutex_);
    if (home_ != nullptr) home_->locked([&] { home_->client_.release(step); });
  }
  void set(RemoteHome* home) {
    std::lock_guard lock(mutex_);
    home_ = home;
  }

 private:
  mutable std::shared_mutex mutex_;  // exclusive when the home comes and goes
  RemoteHome* home_ = nullptr;
};

double RemoteHome::now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

RemoteHome::RemoteHome(RowClientOptions options, Transport& transport, StreamSecurity security)
    : transport_(transport),
      security_(std::move(security)),
      addresses_(options.addresses),
      access_(std::make_shared<Access>()),
      client_([&] {
        options.images = access_;
        return std::move(options);
      }()),
      links_(addresses_.size()) {
  access_->set(this);
  client_.tick(now());
  for (int s = 0; s < std::ssize(links_); ++s)
    links_[static_cast<size_t>(s)].thread = std::thread([this, s] { run(s); });
  watch_ = std::thread([this] { watch(); });
}

RemoteHome::~RemoteHome() {
  access_->set(nullptr);
  {
    std::unique_lock lock(mutex_);
    client_.set_wake(nullptr);
    if (client_.has_begun()) client_.end();
    changed_.notify_all();
    changed_.wait_for(lock, kGoodbye,
                      [&] { return !client_.is_busy() || !client_.failure().ok(); });
    stop_ = true;
    cancel_streams();
    changed_.notify_all();
    stopping_.notify_all();
  }
  for (Link& link : links_) link.thread.join();
  watch_.join();
}

/// While mutex_ is held.
void RemoteHome::cancel_streams() {
  for (Link& link : links_)
    if (link.stream != nullptr) link.stream->cancel();
}

void RemoteHome::watch() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    client_.tick(now());
    if (!client_.failure().ok()) cancel_streams();
    changed_.notify_all();  // a ping may be there to be sent
    stopping_.wait_for(lock, kTick, [&] { return stop_; });
  }
}

RemoteHome::Ticket RemoteHome::fetch(std::span<const table::FetchedRows> rows, int64_t fence) {
  return locked([&] { return client_.fetch(rows, fence); });
}
RemoteHome::Ticket RemoteHome::put(std::span<const table::PutRows> rows, int64_t step) {
  return locked([&] { return client_.put(rows, step); });
}
RemoteHome::Ticket RemoteHome::cut(int64_t step, std::span<const table::PutRows> changed) {
  return locked([&] { return client_.cut(step, changed); });
}
void RemoteHome::poll(std::vector<Answer>& answers) {
  std::lock_guard lock(mutex_);
  client_.poll(answers);
}
void RemoteHome::set_wake(std::function<void()> wake) {
  std::lock_guard lock(mutex_);
  client_.set_wake(std::move(wake));
}

Status RemoteHome::record(int64_t step, std::span<const std::byte> bytes) {
  return ask(0, {MessageKind::record,
                 0,
                 step,
                 0,
                 {std::vector<std::byte>(bytes.begin(), bytes.end())}})
      .status();
}

std::shared_ptr<table::RowSnapshot> RemoteHome::image_of_begin() {
  std::lock_guard lock(mutex_);
  return client_.image_of_begin();
}

Status RemoteHome::wait_until_begun() {
  std::unique_lock lock(mutex_);
  for (int s = 0; s < client_.servers(); ++s) client_.call(s, {MessageKind::ping});  // has a limit
  changed_.notify_all();
  changed_.wait(lock, [&] { return client_.has_begun() || !client_.failure().ok(); });
  return client_.failure();
}

Result<Message> RemoteHome::ask(int server, Message message) {
  std::unique_lock lock(mutex_);
  const int64_t number = client_.call(server, std::move(message));
  asked_[number] = std::nullopt;
  changed_.notify_all();
  changed_.wait(lock, [&] {
    take_replies();
    return asked_[number].has_value();
  });
  RowClient::Reply reply = *std::move(asked_.extract(number).mapped());
  if (!reply.status.ok()) return reply.status;
  return std::move(reply.message);
}

void RemoteHome::take_replies() {
  std::vector<RowClient::Reply> replies;
  client_.poll_replies(replies);
  bool any = false;
  for (auto& reply : replies) {
    const auto asked = asked_.find(reply.number);
    if (asked == asked_.end()) continue;
    asked->second = std::move(reply);
    any = true;
  }
  if (any) changed_.notify_all();
}

/// Connects, sends until the connection breaks, and so on.
void RemoteHome::run(int server) {
  constexpr auto kLeast = std::chrono::milliseconds(10), kMost = std::chrono::milliseconds(1000);
  std::unique_lock lock(mutex_);
  for (auto pause = kLeast; !stop_ && client_.failure().ok(); pause = std::min(2 * pause, kMost)) {
    if (connect(server, lock)) pause = kLeast;
    changed_.wait_for(lock, pause, [&] { return stop_; });
  }
}

/// Whether the server has taken this rank; returns when the connection is over.
bool RemoteHome::connect(int server, std::unique_lock<std::mutex>& lock) {
  Link& link = links_[static_cast<size_t>(server)];
  lock.unlock();
  auto stream = transport_.connect(addresses_[static_cast<size_t>(server)], security_);
  lock.lock();
  if (!stream.ok()) client_.disconnected(server, now(), stream.status());
  if (!stream.ok() || stop_) return false;
  link.stream = *std::move(stream);
  link.end.reset();
  client_.connected(server, now());
  std::thread receiver([&] { receive(server); });
  send_all(server, lock);
  link.stream->cancel();
  lock.unlock();
  receiver.join();
  lock.lock();
  link.stream = nullptr;
  const bool was_taken = client_.is_connected(server);
  client_.disconnected(server, now(), *link.end);
  return was_taken;
}

void RemoteHome::send_all(int server, std::unique_lock<std::mutex>& lock) {
  Link& link = links_[static_cast<size_t>(server)];
  while (!stop_ && !link.end && client_.failure().ok()) {
    const auto message = client_.next(server);
    if (!message) {
      changed_.wait(lock);
      continue;
    }
    lock.unlock();
    const Status status = link.stream->send(*message);
    bytes_ += bytes_of(*message);
    lock.lock();
    if (!status.ok()) break;
  }
}

void RemoteHome::receive(int server) {
  Link& link = links_[static_cast<size_t>(server)];
  while (true) {
    const auto message = link.stream->receive();
    std::lock_guard lock(mutex_);
    changed_.notify_all();
    if (!message.ok()) {
      link.end = message.status();
      return;
    }
    bytes_ += bytes_of(*message);
    client_.take(server, *message, now());
    room_ = client_.room();
  }
}

}  // namespace recmill::remote
