// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

namespace recmill {

/// Between two looks at what one waits for: first nothing, then others may have the core, then it
/// sleeps, the longer the longer it has waited, so that a rank which waits takes little from those
/// that compute, and a hundredth more at most than it has to. Who waits beside a thread that has
/// work sleeps at once: looking would take that thread's core.
class Patience {
 public:
  explicit Patience(bool beside_work = false)
      : looks_(beside_work ? kYields : 0), shortest_(beside_work ? 200e-6 : 50e-6) {}

  void wait(double waited_seconds) {
    ++looks_;
    if (looks_ > kYields) {
      std::this_thread::sleep_for(
          std::chrono::duration<double>(std::clamp(waited_seconds / 100, shortest_, 2e-3)));
    } else if (looks_ > kSpins) {
      sched_yield();
    }
  }

 private:
  static constexpr int64_t kSpins = 32, kYields = 2000;
  int64_t looks_;
  const double shortest_;  // seconds that it sleeps at least
};

}  // namespace recmill
