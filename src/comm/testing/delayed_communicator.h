// SPDX-License-Identifier: Apache-2.0
// Shuffles the order in which ranks come to their calls, and leave them: for tests.
#pragma once

#include <chrono>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/random.h"
#include "comm/communicator.h"

namespace recmill {

/// Decorates a communicator: before and after each call it yields or sleeps for a while that is a
/// function of (seed, rank, count of calls).
class DelayedCommunicator final : public Communicator {
 public:
  DelayedCommunicator(Communicator& inner, uint64_t seed)
      : DelayedCommunicator(inner, seed, inner.shares_memory()) {}
  /// `shares_memory` false: as if ranks were on different hosts.
  DelayedCommunicator(Communicator& inner, uint64_t seed, bool shares_memory)
      : inner_(inner), random_(seed, Purpose::test, inner.rank()), shares_memory_(shares_memory) {}

  int rank() const override { return inner_.rank(); }
  int ranks() const override { return inner_.ranks(); }
  Result<Received> all_to_all(std::span<const std::span<const std::byte>> to_rank) override {
    return delayed([&] { return inner_.all_to_all(to_rank); });
  }
  Result<Received> all_gather(std::span<const std::byte> bytes) override {
    return delayed([&] { return inner_.all_gather(bytes); });
  }
  Status broadcast(std::span<std::byte> bytes, int root) override {
    return delayed([&] { return inner_.broadcast(bytes, root); });
  }
  Status barrier() override {
    return delayed([&] { return inner_.barrier(); });
  }
  Result<std::unique_ptr<Exchange>> exchange(size_t bytes) override {
    RECMILL_ASSIGN_OR_RETURN(auto inner, delayed([&] { return inner_.exchange(bytes); }));
    return std::unique_ptr<Exchange>(new DelayedExchange(*this, std::move(inner)));
  }
  bool shares_memory() const override { return shares_memory_; }
  Result<std::unique_ptr<Window>> window(size_t bytes) override {
    RECMILL_ASSIGN_OR_RETURN(auto inner, delayed([&] { return inner_.window(bytes); }));
    return std::unique_ptr<Window>(new DelayedWindow(*this, std::move(inner)));
  }
  Result<std::unique_ptr<Communicator>> duplicate() override {
    RECMILL_ASSIGN_OR_RETURN(auto inner, delayed([&] { return inner_.duplicate(); }));
    auto made = std::make_unique<DelayedCommunicator>(*inner, ++duplicates_, shares_memory_);
    made->owned_ = std::move(inner);
    return std::unique_ptr<Communicator>(std::move(made));
  }
  void abort(const Status& why) override { inner_.abort(why); }
  Status failure() override { return inner_.failure(); }
  Traffic traffic() const override { return inner_.traffic(); }

 private:
  class DelayedExchange final : public Exchange {
   public:
    DelayedExchange(DelayedCommunicator& of, std::unique_ptr<Exchange> inner)
        : of_(of), inner_(std::move(inner)) {}
    Status send(std::span<const std::byte> bytes, int to, int group) override {
      return of_.delayed([&] { return inner_->send(bytes, to, group); });
    }
    Status receive(std::span<std::byte> bytes, int from, int group) override {
      return of_.delayed([&] { return inner_->receive(bytes, from, group); });
    }
    Status wait(int group) override {
      return of_.delayed([&] { return inner_->wait(group); });
    }

   private:
    DelayedCommunicator& of_;
    const std::unique_ptr<Exchange> inner_;
  };

  class DelayedWindow final : public Window {
   public:
    DelayedWindow(DelayedCommunicator& of, std::unique_ptr<Window> inner)
        : of_(of), inner_(std::move(inner)) {}
    std::span<std::byte> of(int rank) const override { return inner_->of(rank); }
    void count(uint64_t sent, uint64_t received) override { inner_->count(sent, received); }
    Status fence(uint64_t what) override {
      return of_.delayed([&] { return inner_->fence(what); });
    }

   private:
    DelayedCommunicator& of_;
    const std::unique_ptr<Window> inner_;
  };

  template <typename Call>
  std::invoke_result_t<Call> delayed(const Call& call) {
    wait();
    auto result = call();
    wait();
    return result;
  }

  void wait() {
    const uint64_t draw = random_.below(16, calls_++);
    if (draw >= 14) std::this_thread::sleep_for(std::chrono::microseconds(100 * (draw - 13)));
    for (uint64_t i = 0; i < draw; ++i) std::this_thread::yield();
  }

  std::unique_ptr<Communicator> owned_;  // a duplicate's `inner_`
  Communicator& inner_;
  uint64_t duplicates_ = 0;
  const Random random_;
  const bool shares_memory_;
  uint64_t calls_ = 0;
};

}  // namespace recmill
