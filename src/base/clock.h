// SPDX-License-Identifier: Apache-2.0
// The seam to time: nothing that decides reads it, and what acts takes it as an argument.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

namespace recmill {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t now_ns() const = 0;  // monotonic
};

class SteadyClock final : public Clock {
 public:
  int64_t now_ns() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};

/// Seconds since construction or the last lap().
class Stopwatch {
 public:
  double seconds() const { return static_cast<double>(clock_.now_ns() - start_) * 1e-9; }
  /// The seconds, and starts again.
  double lap() {
    const int64_t now = clock_.now_ns();
    return static_cast<double>(now - std::exchange(start_, now)) * 1e-9;
  }

 private:
  SteadyClock clock_;
  int64_t start_ = clock_.now_ns();
};

}  // namespace recmill
