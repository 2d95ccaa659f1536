// SPDX-License-Identifier: Apache-2.0
// Shuffles the order in which ranks come to their calls, and leave them: for tests.
#pragma once

#include <chrono>
#include <thread>
#include <type_traits>

#include "base/random.h"
#include "comm/communicator.h"

namespace recmill {

/// Decorates a communicator: before and after each call it yields or sleeps for a while that is a
/// function of (seed, rank, count of calls).
class DelayedCommunicator final : public Communicator {
 public:
  DelayedCommunicator(Communicator& inner, uint64_t seed)
      : inner_(inner), random_(seed, Purpose::test, inner.rank()) {}

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
  void abort(const Status& why) override { inner_.abort(why); }
  Traffic traffic() const override { return inner_.traffic(); }

 private:
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

  Communicator& inner_;
  const Random random_;
  uint64_t calls_ = 0;
};

}  // namespace recmill
