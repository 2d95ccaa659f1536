// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "device/emulation/thread_state.h"

namespace recmill::emulation {

/// A lane that may not be read.
struct ForbiddenRead {
  int lane = -1, of = -1;  // the reader, and whom it reads; -1: none
};

/// What each lane of the mask gets of a call that all of them made. Of a shuffle that reads a lane
/// outside of the mask, which is undefined, the first such.
ForbiddenRead warp_results(const WarpCall* const (&calls)[kWarp], uint64_t (&results)[kWarp]);

}  // namespace recmill::emulation
