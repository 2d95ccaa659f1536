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

/// Writes what `rows` gives by read_touched() as the part that is ordered, and says what is in it
/// (checkpoint::encode()). Leaves no file where it fails.
using WritePart =
    std::function<Result<std::string>(const RowServer::Write& ordered, table::RowSnapshot& rows)>;

/// A RowServer with threads: two for each stream, one that looks at the clock, and one that writes
/// parts of checkpoints.
class RowService final : public StreamHandler {
 public:
  /// `say`: where lines for people go.
  explicit RowService(int64_t instance, std::function<void(const std::string&)> say = {},
                      ServerOptions options = {}, WritePart write_part = {});
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

  class Reading;
  void send(MessageStream& stream, RowServer::Connection connection);
  void hand_out();
  void watch();
  void write_parts();

  const std::function<void(const std::string&)> say_;
  const WritePart write_part_;
  mutable std::mutex mutex_;
  std::condition_variable changed_, stopping_, ordered_;
  // Guarded by mutex_:
  RowServer server_;
  std::map<RowServer::Connection, Caller> callers_;
  RowServer::Connection next_ = 0;
  bool stop_ = false;

  std::thread watch_, writer_;  // last
};

}  // namespace recmill::remote
