// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace recmill {

/// Time that only passes where somebody says so.
class StandingClock final : public Clock {
 public:
  int64_t now_ns() const override { return now_; }
  void pass(double nanoseconds) { now_ += static_cast<int64_t>(nanoseconds); }

 private:
  int64_t now_ = 1000;
};

}  // namespace recmill
