// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace recmill::hotset {

/// Within plus and minus this a variable of Student's t distribution lies with probability
/// `confidence`, in (0, 1): 3.601 for 0.999 and 34 degrees of freedom. Degrees >= 1; above 10,000
/// they are taken as 10,000, which is wider by less than 0.001.
double two_sided_t(double confidence, int64_t degrees);

}  // namespace recmill::hotset
