// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/options.h"

namespace recmill {

/// Rows, dimensions, sizes of layers: a byte of each is more than any machine has.
constexpr Range size_range() {
  return between(1, 0x1p56);
}

}  // namespace recmill
