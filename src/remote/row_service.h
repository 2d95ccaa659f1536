// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "remote/row_server.h"
#include "remote/stream.h"

namespace recmill::remote {

/// A RowServer with threads: two for each stream, and one that looks at the clock.
class RowService final : public StreamHandler {
 public:
  /// `say`: where lines for people go.
  explicit RowService(int64_t instance, std::function<void(const std::string&)> say = {});
  /// No stream is served any more.
  ~RowService() override;

  void serve(MessageStream& stream) override;
  std::string status() const;

 private:
  /// What waits to be sent to one caller.
  struct Caller {
    std::deque<Message> out;
    bool ends = false;  // behind them
  };

  void send(MessageStream& stream, RowServer::Connection connection);
  void hand_out();
  void watch();

  const std::function<void(const std::string&)> say_;
  mutable std::mutex mutex_;
  std::condition_variable changed_, stopping_;
  // Guarded by mutex_:
  RowServer server_;
  std::map<RowServer::Connection, Caller> callers_;
  RowServer::Connection next_ = 0;
  bool stop_ = false;

  std::thread watch_;  // last
};

}  // namespace recmill::remote
