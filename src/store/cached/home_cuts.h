// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "store/cached/home_calls.h"

namespace recmill::store {

/// A store whose rows are at a home, of which it makes images.
class HomeCuts {
 public:
  virtual ~HomeCuts() = default;

  /// Of the rows as they are between two steps. Collective. Returns once what changed has been
  /// copied out of slots, and the image before is whole: training goes on while this one comes.
  virtual Result<ComingImage> cut() = 0;
};

}  // namespace recmill::store
