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
/// that compute, and a hundredth more at most than it has to.
class Patience {
 public:
  void wait(double waited_seconds) {
    ++looks_;
    if (looks_ > kYields) {
      std::this_thread::sleep_for(
          std::chrono::duration<double>(std::clamp(waited_seconds / 100, 50e-6, 2e-3)));
    } else if (looks_ > kSpins) {
      sched_yield();
    }
  }

 private:
  static constexpr int64_t kSpins = 32, kYields = 2000;
  int64_t looks_ = 0;
};

}  // namespace recmill
