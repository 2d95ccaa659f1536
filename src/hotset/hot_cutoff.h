// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/status.h"

namespace recmill::hotset {

/// Lookups that make a row hot: ceil(threshold x inputs), at least 1 (FAE, equation 1). The
/// threshold counts as the shortest decimal that reads as it, so that 0.07 of 100 is 7. It is above
/// 0; a cutoff beyond 2^62 is that.
int64_t cutoff_of(double threshold, int64_t inputs);

}  // namespace recmill::hotset
