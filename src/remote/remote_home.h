// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "remote/row_client.h"
#include "remote/stream.h"
#include "table/home/recorded_home.h"

namespace recmill::remote {

/// A RowClient with threads: two for each server, of which one connects and sends, and the other
/// receives; and one that looks at the clock, so that no call of a network that has fallen silent
/// holds up the end.
class RemoteHome final : public table::RecordedHome {
 public:
  /// `options.images` is the home's own. `transport` outlives it.
  RemoteHome(RowClientOptions options, Transport& transport, StreamSecurity security);
  /// Says goodbye, if what was called has been answered soon.
  ~RemoteHome() override;

  /// Waits until all servers have taken this rank, or fails.
  Status wait_until_begun();

  Ticket fetch(std::span<const table::FetchedRows> rows, int64_t fence) override;
  Ticket put(std::span<const table::PutRows> rows, int64_t step) override;
  Ticket cut(int64_t step, std::span<const table::PutRows> changed) override;
  void poll(std::vector<Answer>& answers) override;
  void set_wake(std::function<void()> wake) override;

  Status record(int64_t step, std::span<const std::byte> bytes) override;
  void keep(std::shared_ptr<table::RowSnapshot> image) override { kept_ = std::move(image); }
  table::HomeRoom room() const override { return room_; }

  /// Of a term that does not begin anew: all rows as it begins.
  std::shared_ptr<table::RowSnapshot> image_of_begin();
  /// Of all messages so far, either way: their headers and bodies.
  int64_t bytes() const { return bytes_; }
  /// One message to a server, and its answer.
  Result<Message> ask(int server, Message message);

 private:
  class Access;
  struct Link {
    std::unique_ptr<MessageStream> stream = nullptr;
    std::optional<Status> end = {};  // why it has ended
    std::thread thread = {};
  };

  template <class Body>
  auto locked(const Body& body);
  void run(int server);
  bool connect(int server, std::unique_lock<std::mutex>& lock);
  void send_all(int server, std::unique_lock<std::mutex>& lock);
  void receive(int server);
  void take_replies();
  void watch();
  void cancel_streams();
  static double now();

  Transport& transport_;
  const StreamSecurity security_;
  const std::vector<std::string> addresses_;
  const std::shared_ptr<Access> access_;

  std::shared_ptr<table::RowSnapshot> kept_;  // lets go when nobody hears it

  std::mutex mutex_;
  std::condition_variable changed_, stopping_;
  // Guarded by mutex_:
  RowClient client_;
  std::map<int64_t, std::optional<RowClient::Reply>> asked_;  // that somebody waits for
  bool stop_ = false;

  std::atomic<int64_t> bytes_{0};
  std::atomic<table::HomeRoom> room_{table::HomeRoom::enough};
  std::vector<Link> links_;  // `stream` and `end` are guarded by mutex_
  std::thread watch_;        // last
};

}  // namespace recmill::remote
