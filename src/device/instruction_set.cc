// SPDX-License-Identifier: Apache-2.0
#include "device/instruction_set.h"

#include <hwy/highway.h>

#include <cstdint>

namespace recmill {

// Better ones have lower bits.
std::string instruction_set() {
  const int64_t both = int64_t{hwy::SupportedTargets()} & int64_t{HWY_TARGETS};
  return hwy::TargetName(both & -both);
}

}  // namespace recmill
