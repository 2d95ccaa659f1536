// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "comm/call_header.h"
#include "comm/communicator.h"
#include "comm/link.h"

namespace recmill {

/// The calls of a communicator by messages over a network. Every message has a header ahead of it
/// that says which call it belongs to, so that ranks that are not in step find out. Waits look at
/// messages again and again, and see what other ranks tell of failures: a call never waits for a
/// rank that has failed, nor longer than its limit.
class MessageCommunicator final : public Communicator {
 public:
  /// `names` [ranks]: as failures name the ranks.
  MessageCommunicator(std::unique_ptr<Link> link, std::vector<std::string> names,
                      double limit_seconds);
  ~MessageCommunicator() override;

  int rank() const override { return rank_; }
  int ranks() const override { return static_cast<int>(names_.size()); }
  std::string name(int rank) const override { return names_[rank]; }
  Result<Received> all_to_all(std::span<const std::span<const std::byte>> to_rank) override;
  Result<Received> all_gather(std::span<const std::byte> bytes) override;
  Status broadcast(std::span<std::byte> bytes, int root) override;
  Status barrier() override;
  Result<std::unique_ptr<Exchange>> exchange(size_t bytes) override;
  bool shares_memory() const override { return link_->shares_memory(); }
  Result<std::unique_ptr<Window>> window(size_t bytes) override;
  Result<std::unique_ptr<Communicator>> duplicate() override;
  void abort(const Status& why) override;
  Status failure() override;

  /// Whether it has failed, and here before it was heard of any other rank's failure. Any thread.
  bool has_failed() const { return has_failed_; }
  bool failed_here() const { return failed_here_; }

 private:
  using Header = CallHeader;
  using Call = CallHeader::Call;
  class MessageExchange;
  class HostWindow;

  Result<Received> gather(Call call, std::span<const std::span<const std::byte>> to_rank);
  Status wait(std::initializer_list<Transfers*> all, Call call);
  Status wait_until(const std::function<Result<Progress>()>& look, Call call,
                    const std::function<std::set<int>()>& missing);
  Status failed(const Status& status);

  const std::unique_ptr<Link> link_;
  const int rank_;
  const std::vector<std::string> names_;
  const double limit_seconds_;
  uint64_t calls_ = 0;
  MessageCommunicator* original_ = nullptr;  // of which this is a duplicate
  std::mutex mutex_;
  Status failure_;                             // of the rank heard of first; guarded by mutex_
  std::set<MessageCommunicator*> duplicates_;  // guarded by mutex_
  std::atomic<bool> has_failed_{false}, failed_here_{false};
};

}  // namespace recmill
