// SPDX-License-Identifier: Apache-2.0
// How often each lane of a warp came to each basic block of code since the lanes last met. Raw
// arrays, for the reason that block.h gives.
#pragma once

#include <cstdint>

#include "device/emulation/thread_state.h"

namespace recmill::emulation {

class LaneCounts {
 public:
  LaneCounts() = default;
  ~LaneCounts() { delete[] places_; }
  LaneCounts(const LaneCounts&) = delete;
  LaneCounts& operator=(const LaneCounts&) = delete;

  /// Lane `lane` comes to `place`. False, and nothing is added: there are too many places.
  bool add(const void* place, unsigned lane) {
    if (places_ == nullptr) places_ = new Place[kPlaces]();
    auto at = static_cast<unsigned>(reinterpret_cast<uintptr_t>(place) * 0x9e3779b97f4a7c15u >> 52);
    while (places_[at].place != place) {
      if (places_[at].place == nullptr) {
        if (used_count_ == kMostUsed) return false;
        places_[at].place = place;
        used_[used_count_++] = at;
        break;
      }
      at = (at + 1) % kPlaces;
    }
    const unsigned count = ++places_[at].of_lane[lane];
    if (count > places_[at].most) places_[at].most = count;
    return true;
  }

  /// The sum over places of the most that a lane came there; counts from zero again.
  int64_t take() {
    int64_t sum = 0;
    for (unsigned i = 0; i < used_count_; ++i) {
      sum += places_[used_[i]].most;
      places_[used_[i]] = {};
    }
    used_count_ = 0;
    return sum;
  }

 private:
  static constexpr unsigned kPlaces = 4096, kMostUsed = 3072;
  struct Place {
    const void* place = nullptr;
    unsigned most = 0;
    unsigned of_lane[kWarp] = {};
  };
  Place* places_ = nullptr;  // a hash table
  unsigned used_[kMostUsed] = {}, used_count_ = 0;
};

}  // namespace recmill::emulation
