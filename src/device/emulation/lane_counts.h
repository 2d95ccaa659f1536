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
  ~LaneCounts() {
    delete[] slots_;
    delete[] places_;
  }
  LaneCounts(const LaneCounts&) = delete;
  LaneCounts& operator=(const LaneCounts&) = delete;

  /// Lane `lane` comes to `place`. False, and nothing is added: there are too many places.
  bool add(const void* place, unsigned lane) {
    if (slots_ == nullptr) allocate();
    auto at = static_cast<unsigned>(reinterpret_cast<uintptr_t>(place) * 0x9e3779b97f4a7c15u >> 52);
    while (slots_[at].place != place) {
      if (slots_[at].place == nullptr) {
        if (count_ == kMostPlaces) return false;
        slots_[at] = {place, count_};
        places_[count_++].slot = at;
        break;
      }
      at = (at + 1) % kSlots;
    }
    Place& of = places_[slots_[at].number];
    if (++of.of_lane[lane] > of.most) {
      ++of.most;
      ++sum_;
    }
    return true;
  }

  /// The sum over places of the most that a lane came there; counts from zero again.
  int64_t take() {
    for (unsigned i = 0; i < count_; ++i) {
      slots_[places_[i].slot] = {};
      places_[i] = {};
    }
    const int64_t sum = sum_;
    count_ = 0;
    sum_ = 0;
    return sum;
  }

 private:
  static constexpr unsigned kSlots = 4096, kMostPlaces = 3072;
  struct Slot {
    const void* place = nullptr;
    unsigned number = 0;
  };
  struct Place {
    unsigned slot = 0, most = 0;
    unsigned of_lane[kWarp] = {};
  };
  void allocate() {
    slots_ = new Slot[kSlots]();
    places_ = new Place[kMostPlaces]();
  }

  Slot* slots_ = nullptr;  // a hash table of places
  Place* places_ =
      nullptr;  // side by side in the order they were first come to, so few lines of cache
  unsigned count_ = 0;
  int64_t sum_ = 0;  // of `most`
};

}  // namespace recmill::emulation
