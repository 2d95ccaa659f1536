// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/pool.h"

namespace recmill {

/// An ordered queue of work on one device. On the CPU device work runs at once, on the pool.
class Stream {
 public:
  explicit Stream(Pool& pool) : pool_(&pool) {}
  Pool& pool() const { return *pool_; }

 private:
  Pool* pool_;
};

}  // namespace recmill
