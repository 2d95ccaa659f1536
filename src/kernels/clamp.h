// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/host_device.h"

namespace recmill::kernels {

/// For formulas: the same choice between equal zeros on every device.
RECMILL_HOST_DEVICE inline float clamp(float x, float low, float high) {
  return x < low ? low : (high < x ? high : x);
}

}  // namespace recmill::kernels
