// SPDX-License-Identifier: Apache-2.0
// Ranks talk through this. Every call is collective: all ranks make the same calls in the same
// order; a rank with nothing to send takes part with empty pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "comm/exchange.h"
#include "comm/window.h"

namespace recmill {

/// Bytes received from each rank, in rank order.
struct Received {
  std::vector<std::byte> bytes;
  std::vector<size_t> offsets;  // [ranks + 1]
  std::span<const std::byte> from(int rank) const {
    return std::span(bytes).subspan(offsets[rank], offsets[rank + 1] - offsets[rank]);
  }
};

/// What a rank has done in the calls of a communicator so far.
struct Traffic {
  double seconds = 0.0;             // in calls: waiting for others, and for bytes to move
  uint64_t sent = 0, received = 0;  // bytes to and from other ranks, headers left out
};

class Communicator {  // More than eight functions: each pattern is faster as such.
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  /// As messages name a rank.
  virtual std::string name(int rank) const { return "rank " + std::to_string(rank); }

  /// Sends to_rank[r] to rank r; counts need not be known to the receiver. to_rank.size() ==
  /// ranks().
  virtual Result<Received> all_to_all(std::span<const std::span<const std::byte>> to_rank) = 0;
  /// Every rank gets every rank's bytes.
  virtual Result<Received> all_gather(std::span<const std::byte> bytes) = 0;
  /// Every rank gets root's bytes; sizes are equal on all ranks.
  virtual Status broadcast(std::span<std::byte> bytes, int root) = 0;
  virtual Status barrier() = 0;
  /// Begins messages straight between ranks' memory. No other call before it is destroyed. `bytes`:
  /// the size of what they exchange parts of; ranks that give different ones find out in the first
  /// wait at the latest.
  virtual Result<std::unique_ptr<Exchange>> exchange(size_t bytes) = 0;
  /// Whether all ranks are on one host, so that window() can be had. The same on all ranks.
  virtual bool shares_memory() const = 0;
  /// `bytes` for each rank, the same on all. Fails on all ranks when the host does not have the
  /// memory. Nothing is left of it when the processes end, however they end.
  virtual Result<std::unique_ptr<Window>> window(size_t bytes) = 0;
  /// Between the same ranks, for another thread: calls of the two may be made at the same time, and
  /// waits of the other leave the cores to who computes. A failure of this one is also the other's,
  /// which must not outlive it.
  virtual Result<std::unique_ptr<Communicator>> duplicate() = 0;
  /// Tells all ranks that this one has failed: their pending and later calls return an error that
  /// names this rank and `why`, so that nobody waits for it.
  virtual void abort(const Status& why) = 0;
  /// That of the rank which this one heard of first, as calls return it; does not wait. For the
  /// thread that makes the calls.
  virtual Status failure() = 0;
  /// For the thread that makes the calls.
  virtual Traffic traffic() const { return traffic_; }

 protected:
  /// Adds its own life to traffic().seconds: one in every call.
  class CallTimer {
   public:
    explicit CallTimer(Communicator& of) : traffic_(of.traffic_) {}
    ~CallTimer() { traffic_.seconds += watch_.seconds(); }
    CallTimer(const CallTimer&) = delete;
    CallTimer& operator=(const CallTimer&) = delete;

   private:
    Traffic& traffic_;
    Stopwatch watch_;
  };
  void count_sent(uint64_t bytes) { traffic_.sent += bytes; }
  void count_received(uint64_t bytes) { traffic_.received += bytes; }

 private:
  Traffic traffic_;
};

}  // namespace recmill
