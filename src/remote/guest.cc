// SPDX-License-Identifier: Apache-2.0
#include "remote/guest.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "remote/greeting.h"

namespace recmill::remote {
namespace {

/// Cancels a stream that takes too long.
class TimeLimit {
 public:
  TimeLimit(MessageStream& stream, double seconds)
      : thread_([this, &stream, seconds] {
          std::unique_lock lock(mutex_);
          if (changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                                [this] { return is_over_; }))
            return;
          has_passed_ = true;
          stream.cancel();
        }) {}
  ~TimeLimit() { end(); }
  /// Whether it was too long.
  bool end() {
    {
      std::lock_guard lock(mutex_);
      is_over_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
    return has_passed_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false, has_passed_ = false;
  std::thread thread_;  // last
};

Result<Message> ask(MessageStream& stream, const Message& message) {
  RECMILL_RETURN_IF_ERROR(stream.send(message));
  RECMILL_ASSIGN_OR_RETURN(auto answer, stream.receive());
  if (answer.kind == MessageKind::error) return Status::Failed(std::string(answer.body.text()));
  return answer;
}

Result<Message> ask_both(MessageStream& stream, const Message& question) {
  const Message hello{MessageKind::hello, 0, 0, -1, write_guest_greeting()};
  RECMILL_RETURN_IF_ERROR(ask(stream, hello).status());
  return ask(stream, question);
}

}  // namespace

Result<Message> ask_as_guest(const std::string& address, const Message& question,
                             Transport& transport, const StreamSecurity& security, double seconds) {
  auto stream = transport.connect(address, security);
  if (!stream.ok()) return stream.status().at(address);
  TimeLimit limit(**stream, seconds);
  auto answer = ask_both(**stream, question);
  if (limit.end())
    return Status::Failed(address + ": has not answered for " +
                          std::to_string(static_cast<int64_t>(seconds)) + " seconds");
  if (!answer.ok()) return answer.status().at(address);
  return answer;
}

}  // namespace recmill::remote
