// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/host_device.h"

namespace recmill::kernels {

/// L2 on looked-up rows: what a row optimizer takes for the gradient of an element whose weight is
/// `weight` before the update: gradient + l2 * weight. At l2 = 0 the gradient keeps its bits, which
/// adding 0 * weight would not (-0 + 0 is +0).
RECMILL_HOST_DEVICE inline float with_l2(float gradient, float weight, float l2) {
  const float sum = gradient + l2 * weight;
  return l2 == 0.0f ? gradient : sum;
}

}  // namespace recmill::kernels
