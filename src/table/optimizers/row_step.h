// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace recmill::table {

/// One training step of all tables. `learning_rate_scale` (warm-up, decay) multiplies each table's
/// own learning rate.
struct RowStep {
  int64_t iteration = 0;  // counts from 0, over the whole run
  double learning_rate_scale = 1.0;
};

}  // namespace recmill::table
