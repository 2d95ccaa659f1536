// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/status.h"
#include "table/home/row_home.h"

namespace recmill::store {

/// The steps that a writer names to its home. They ascend with those of the stream, and leave room
/// behind each for cuts, and before and behind each of these for puts that no plan asked for. Ranks
/// that have made the same cuts behind the same step make the next one at the same step of the
/// home, however often each has put.
class HomeSteps {
 public:
  /// `begin`: where all marks are.
  explicit HomeSteps(int64_t begin)
      : base_(begin < 0 ? 0 : (begin / kOfStep + 1) * kOfStep), current_(base_) {}

  /// At which rows are put that leave after a step of the stream, or none did: a fence.
  int64_t of(int64_t step) const {
    return step < 0 ? table::RowHome::kNoFence : base_ + (step + 1) * kOfStep;
  }
  /// The same; from now on what is put, or cut, comes behind it.
  int64_t left(int64_t step) {
    puts_ = cuts_ = 0;
    return current_ = of(step);
  }
  int64_t next_put() {
    RECMILL_CHECK(++puts_ < kOfCut - 1);
    return current_ + cuts_ * kOfCut + puts_;
  }
  int64_t next_cut() {
    RECMILL_CHECK(++cuts_ < kOfStep / kOfCut);
    puts_ = 0;
    return current_ + cuts_ * kOfCut - 1;
  }

 private:
  static constexpr int64_t kOfStep = int64_t{1} << 32, kOfCut = int64_t{1} << 24;

  const int64_t base_;
  int64_t current_;
  int64_t puts_ = 0, cuts_ = 0;
};

}  // namespace recmill::store
