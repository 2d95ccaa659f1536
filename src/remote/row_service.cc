// SPDX-License-Identifier: Apache-2.0
#include "remote/row_service.h"

#include <chrono>
#include <utility>

#include "base/clock.h"
#include "remote/remote_image.h"

namespace recmill::remote {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

/// An image of the server's rows, read as ranks read it.
class RowService::Reading final : public ImageAccess {
 public:
  explicit Reading(RowService& of) : of_(of) {}
  Result<Message> ask(int /*server*/, Message message) override {
    std::lock_guard lock(of_.mutex_);
    if (of_.stop_) return Status::Failed("the server ends");
    return of_.server_.read_image(message.step, message.detail);
  }
  bool may_write_below(const std::string&) const override { return false; }
  void release(int64_t /*step*/) override {}  // who has ordered the part does

 private:
  RowService& of_;
};

RowService::RowService(int64_t instance, std::function<void(const std::string&)> say,
                       ServerOptions options, WritePart write_part)
    : say_(std::move(say)),
      write_part_(std::move(write_part)),
      server_(instance, std::move(options)),
      watch_([this] { watch(); }),
      writer_([this] { write_parts(); }) {}

RowService::~RowService() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    stopping_.notify_all();
    ordered_.notify_all();
  }
  watch_.join();
  writer_.join();
}

std::string RowService::status() const {
  std::lock_guard lock(mutex_);
  return server_.status();
}

void RowService::watch() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    server_.tick(now());
    hand_out();
    stopping_.wait_for(lock, kTick, [&] { return stop_; });
  }
}

void RowService::write_parts() {
  std::unique_lock lock(mutex_);
  while (true) {
    std::optional<RowServer::Write> ordered;
    ordered_.wait(lock, [&] { return stop_ || (ordered = server_.begin_write()).has_value(); });
    if (!ordered) return;
    lock.unlock();
    RowClientOptions options;
    options.greeting = ordered->run;
    options.images = std::make_shared<Reading>(*this);
    options.image_share = ordered->run.server;
    options.image_shares = ordered->run.servers;
    RemoteImage rows(options, ordered->step);
    auto part = write_part_(*ordered, rows);
    lock.lock();
    server_.written(std::move(part), now());
    hand_out();
  }
}

/// While mutex_ is held: what the server has to say goes to those who send it.
void RowService::hand_out() {
  bool any = false;
  for (auto& outgoing : server_.take_out()) {
    const auto caller = callers_.find(outgoing.to);
    if (caller == callers_.end()) continue;
    caller->second.out.push_back(std::move(outgoing.message));
    caller->second.ends |= outgoing.ends;
    any = true;
  }
  if (any) changed_.notify_all();
  ordered_.notify_all();
  for (const std::string& line : server_.take_lines())
    if (say_) say_(line);
}

void RowService::serve(MessageStream& stream) {
  RowServer::Connection connection = 0;
  {
    std::lock_guard lock(mutex_);
    connection = next_++;
    callers_[connection];
  }
  std::thread sender([&] { send(stream, connection); });
  while (true) {
    const auto message = stream.receive();
    std::lock_guard lock(mutex_);
    Caller& caller = callers_[connection];
    if (message.ok()) {
      server_.take(connection, *message, now());
      hand_out();
    }
    if (message.ok() && !caller.ends) continue;
    server_.closed(connection);
    caller.ends = true;
    changed_.notify_all();
    break;
  }
  sender.join();
  std::lock_guard lock(mutex_);
  callers_.erase(connection);
}

void RowService::send(MessageStream& stream, RowServer::Connection connection) {
  std::unique_lock lock(mutex_);
  Caller& caller = callers_[connection];
  while (true) {
    changed_.wait(lock, [&] { return !caller.out.empty() || caller.ends; });
    if (caller.out.empty()) break;
    const Message message = std::move(caller.out.front());
    caller.out.pop_front();
    lock.unlock();
    const Status status = stream.send(message);
    lock.lock();
    if (!status.ok()) break;
  }
  stream.cancel();
}

}  // namespace recmill::remote
